// The shape of a ring: memory of one end of a connection that the other end writes its batches into.
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
    // The blocks from `from` to `to`. `from` is not behind `to`, and the difference is at most a ring.
    friend constexpr std::uint32_t operator-(RingPosition to, RingPosition from) noexcept {
        return static_cast<std::uint32_t>(to.block - from.block);
    }
};

// The limits are such that both ends make progress with messages of all sizes. For one direction, once all requests are
// released: at most C/8 blocks of the ring's C are not returned, twice the promise takes at most C/2, empty batches
// have C/16, and a message needs at most twice its C/8, since the ring's end may be wasted: less than C.
class RingShape {
public:
    static constexpr std::uint32_t kLeastBlocks = 16;   // for tests: it shows all cases
    static constexpr std::uint32_t kLeastBytes = 4096;  // of a connection
    static constexpr std::uint32_t kMostBytes = 1U << 20U;

    [[nodiscard]] static constexpr bool is_valid(std::uint32_t blocks) noexcept {
        return std::has_single_bit(blocks) && blocks >= kLeastBlocks && blocks <= kMostBytes / kBlockBytes;
    }
    // `blocks` is valid (asserted).
    constexpr explicit RingShape(std::uint32_t blocks) noexcept : blocks_(blocks) { CAIRN_ASSERT(is_valid(blocks)); }

    [[nodiscard]] constexpr std::uint32_t blocks() const noexcept { return blocks_; }
    [[nodiscard]] constexpr std::uint32_t index_of(RingPosition position) const noexcept {
        return static_cast<std::uint32_t>(position.block) & (blocks_ - 1);
    }
    // The blocks from a place to the ring's end, at least one.
    [[nodiscard]] constexpr std::uint32_t to_end(RingPosition position) const noexcept {
        return blocks_ - index_of(position);
    }

    // The longest message, with its header.
    [[nodiscard]] constexpr std::uint32_t message_max() const noexcept { return blocks_ / 8; }
    // What the owner's peer may promise for answers at a time, from the beginning of the connection on.
    [[nodiscard]] constexpr std::uint32_t promise_max() const noexcept { return blocks_ / 4; }
    // The largest part of a promise that one request takes. A promise that is less by a step is not renewed.
    // mutants: copyrpc-ring-shape-charge-max
    [[nodiscard]] constexpr std::uint32_t charge_max() const noexcept { return promise_max() - grant_step(); }
    [[nodiscard]] constexpr std::uint32_t grant_step() const noexcept { return blocks_ / 16; }
    // mutants: copyrpc-ring-shape-return-step
    [[nodiscard]] constexpr std::uint32_t return_step() const noexcept { return blocks_ / 8; }
    // Space that only empty batches take.
    [[nodiscard]] constexpr std::uint32_t kept_for_empty() const noexcept { return std::min(blocks_ / 16, 8U); }

    friend constexpr bool operator==(RingShape, RingShape) noexcept = default;

private:
    std::uint32_t blocks_;
};

}  // namespace cairn::copyrpc
