// How an end learns what its peer has read of the ring that it writes to.
#pragma once

#include <cstdint>

#include "lib/base/endian.hpp"

namespace cairn::copyrpc {

enum class Flow : std::uint8_t {
    Credit,  // batches tell it, and promise room for answers
    Read,    // as copyrpc began: batches tell it, and an end that runs short READs it
    Count,
};

struct RawConsumerWord {
    Be32 blocks;
    Be32 batches;
};
static_assert(sizeof(RawConsumerWord) == 8 && alignof(RawConsumerWord) == 1);

// What an end has read of its ring, modulo 2^32. It stands where the peer READs it.
struct ConsumerWord {
    std::uint32_t blocks = 0;   // up to there the ring is free again
    std::uint32_t batches = 0;  // whose receive requests are posted again

    [[nodiscard]] static ConsumerWord of(const RawConsumerWord& raw) noexcept {
        return {raw.blocks.get(), raw.batches.get()};
    }
    [[nodiscard]] RawConsumerWord raw() const noexcept { return {Be32{blocks}, Be32{batches}}; }
    friend bool operator==(const ConsumerWord&, const ConsumerWord&) noexcept = default;
};

}  // namespace cairn::copyrpc
