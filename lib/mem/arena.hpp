// Arena: hands out pieces of one block of memory. No piece is given back alone. reset() takes all of them back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/base/assert.hpp"
#include "lib/base/fetch.hpp"

namespace cairn::mem {

// Divides memory at start, for rings, pools and tables. The memory outlives the arena. Belongs to one thread.
class Arena {
public:
    explicit Arena(std::span<std::uint8_t> memory) noexcept : memory_(memory) {}

    // Returns `bytes` at an address that is a multiple of `alignment` (a power of two); empty if they do not fit.
    [[nodiscard]] std::span<std::uint8_t> try_allocate(std::size_t bytes,
                                                       std::size_t alignment = kCacheLineBytes) noexcept {
        CAIRN_ASSERT(alignment != 0 && (alignment & (alignment - 1)) == 0);
        const auto address = reinterpret_cast<std::uintptr_t>(memory_.data()) + used_;
        const std::size_t gap = (alignment - address % alignment) % alignment;
        if (gap > left() || bytes > left() - gap) {
            return {};
        }
        const std::span<std::uint8_t> piece = memory_.subspan(used_ + gap, bytes);
        used_ += gap + bytes;
        return piece;
    }

    void reset() noexcept { used_ = 0; }  // all pieces handed out end here

    [[nodiscard]] std::size_t used() const noexcept { return used_; }
    [[nodiscard]] std::size_t left() const noexcept { return memory_.size() - used_; }

private:
    std::span<std::uint8_t> memory_;
    std::size_t used_ = 0;
};

}  // namespace cairn::mem
