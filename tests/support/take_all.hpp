// All memory of a pool of messages.
#pragma once

#include <cstdint>
#include <vector>

#include "rpc/common/msg_buffer.hpp"

namespace cairn::rpc::test {

// Takes all memory of the pool. The caller gives it back.
[[nodiscard]] inline std::vector<MsgBuffer> take_all(MsgPool& pool) {
    std::vector<MsgBuffer> all;
    for (std::uint32_t bytes = 1U << 23U; bytes != 0; bytes /= 2) {
        for (MsgBuffer got = pool.allocate(bytes); got.valid(); got = pool.allocate(bytes)) {
            all.push_back(got);
        }
    }
    return all;
}

}  // namespace cairn::rpc::test
