// The shape of a ring: memory of one end of a connection into which the other end writes its batches.
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>

#include "lib/base/assert.hpp"

namespace cairn::copyrpc {

constexpr std::uint32_t kBlockBytes = 32;  // the unit of places, lengths and credits

constexpr std::uint32_t blocks_for(std::uint32_t bytes) noexcept {
    return static_cast<std::uint32_t>((std::uint64_t{bytes} + kBlockBytes - 1) / kBlockBytes);
}

// A place in a ring, in blocks since the connection began. It never wraps.
struct RingPosition {
    std::uint64_t block = 0;

    friend constexpr auto operator<=>(RingPosition, RingPosition) noexcept = default;
    friend constexpr RingPosition operator+(RingPosition from, std::uint32_t blocks) noexcept {
        return {from.block + blocks};
    }
    // Returns the number of blocks from `from` to `to`. `from` is not after `to`, and the difference is at most a ring.
    friend constexpr std::uint32_t operator-(RingPosition to, RingPosition from) noexcept {
        return static_cast<std::uint32_t>(to.block - from.block);
    }
};

// The limits of a ring of C blocks, which let both ends make progress with messages of all sizes. For one direction,
// once all requests are released, the sum of the following is less than C. At most C/8 blocks are not returned. Twice
// the promise takes at most C/2. Empty batches have C/16. A message needs at most twice its C/8, since blocks at the
// ring's end may be wasted.
class RingShape {
public:
    static constexpr std::uint32_t kLeastBlocks = 16;   // for tests, since it shows all cases
    static constexpr std::uint32_t kLeastBytes = 4096;  // for a connection
    static constexpr std::uint32_t kMostBytes = 1U << 20U;

    [[nodiscard]] static constexpr bool is_valid(std::uint32_t blocks) noexcept {
        return std::has_single_bit(blocks) && blocks >= kLeastBlocks && blocks <= kMostBytes / kBlockBytes;
    }
    // Makes a shape. `blocks` is valid (asserted).
    constexpr explicit RingShape(std::uint32_t blocks) noexcept : blocks_(blocks) { CAIRN_ASSERT(is_valid(blocks)); }

    [[nodiscard]] constexpr std::uint32_t blocks() const noexcept { return blocks_; }
    [[nodiscard]] constexpr std::uint32_t index_of(RingPosition position) const noexcept {
        return static_cast<std::uint32_t>(position.block) & (blocks_ - 1);
    }
    // Returns the number of blocks from a position to the ring's end, at least one.
    [[nodiscard]] constexpr std::uint32_t to_end(RingPosition position) const noexcept {
        return blocks_ - index_of(position);
    }

    // Returns the length of the longest message, with its header.
    [[nodiscard]] constexpr std::uint32_t message_max() const noexcept { return blocks_ / 8; }
    // Returns how much the owner's peer may promise for answers at a time, from the beginning of the connection on.
    [[nodiscard]] constexpr std::uint32_t promise_max() const noexcept { return blocks_ / 4; }
    // Returns the largest part of a promise for one request. A promise that is short by less than a step is not
    // renewed.
    [[nodiscard]] constexpr std::uint32_t charge_max() const noexcept { return promise_max() - grant_step(); }
    [[nodiscard]] constexpr std::uint32_t grant_step() const noexcept { return blocks_ / 16; }
    [[nodiscard]] constexpr std::uint32_t return_step() const noexcept { return blocks_ / 8; }
    // Returns the number of blocks that only empty batches may take.
    [[nodiscard]] constexpr std::uint32_t kept_for_empty() const noexcept { return std::min(blocks_ / 16, 8U); }

    friend constexpr bool operator==(RingShape, RingShape) noexcept = default;

private:
    std::uint32_t blocks_;
};

}  // namespace cairn::copyrpc
