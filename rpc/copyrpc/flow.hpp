// The ways in which an end learns how much its peer has read of the ring that the end writes to.
#pragma once

#include <cstdint>

#include "lib/base/endian.hpp"

namespace cairn::copyrpc {

enum class Flow : std::uint8_t {
    Credit,  // batches say it, and promise room for answers
    Read,    // as copyrpc began: batches say it, and an end that runs short READs it
    Count,
};

struct RawConsumerWord {
    Be32 blocks;
    Be32 batches;
};
static_assert(sizeof(RawConsumerWord) == 8 && alignof(RawConsumerWord) == 1);

// An end's position in its own ring, modulo 2^32. It lies in memory that the peer READs.
struct ConsumerWord {
    std::uint32_t blocks = 0;   // the ring is free again up to this block
    std::uint32_t batches = 0;  // batches after which receive requests were posted again

    [[nodiscard]] static ConsumerWord of(const RawConsumerWord& raw) noexcept {
        return {raw.blocks.get(), raw.batches.get()};
    }
    [[nodiscard]] RawConsumerWord raw() const noexcept { return {Be32{blocks}, Be32{batches}}; }
    friend bool operator==(const ConsumerWord&, const ConsumerWord&) noexcept = default;
};

}  // namespace cairn::copyrpc
