// Posting of lists of requests: one after the other, up to the first that is refused.
#pragma once

#include <infiniband/verbs.h>

#include <span>

#include "lib/base/unset_array.hpp"
#include "lib/ibverbs/translate.hpp"

namespace cairn::ibverbs {

using Sges = UnsetArray<roce::Sge, roce::kMaxSges>;

// Writes the pieces to `sges`. A list that is too long is cut after the last one that the verdict needs.
[[nodiscard]] inline std::span<const roce::Sge> to_sges(const ibv_sge* from, int count, Sges& sges) noexcept {
    const auto taken = static_cast<std::size_t>(count);
    for (std::size_t i = 0; i < taken; ++i) {
        sges[i] = {from[i].addr, from[i].length, Lkey{from[i].lkey}};
    }
    return {sges.data(), taken};
}
[[nodiscard]] constexpr bool fits_sges(int count) noexcept {
    return count >= 0 && count <= static_cast<int>(roce::kMaxSges);
}

// Calls `post`, which returns a PostVerdict, for each request. Returns an errno value, and the request that was
// refused.
template <class Post>
int post_receives(ibv_recv_wr* requests, ibv_recv_wr** refused, Post&& post) noexcept {
    Sges sges;
    for (ibv_recv_wr* each = requests; each != nullptr; each = each->next) {
        const int reason =
            fits_sges(each->num_sge)
                ? errno_of(post(roce::ReceiveRequest{each->wr_id, to_sges(each->sg_list, each->num_sge, sges)}))
                : EINVAL;
        if (reason != 0) {
            *refused = each;
            return reason;
        }
    }
    return 0;
}

}  // namespace cairn::ibverbs
