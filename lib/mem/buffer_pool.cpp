#include "lib/mem/buffer_pool.hpp"

#include <algorithm>
#include <bit>

#include "lib/base/assert.hpp"

namespace cairn::mem {

BufferPool::BufferPool(std::span<std::uint8_t> region)
    : region_(region), tags_(region.size() / kSmallestBytes, kInside) {
    CAIRN_ASSERT(reinterpret_cast<std::uintptr_t>(region.data()) % kSmallestBytes == 0);
    CAIRN_ASSERT(tags_.size() < kNone);
    free_.fill(kNone);
    const auto units = static_cast<Unit>(tags_.size());
    Unit unit = 0;
    while (unit < units) {
        // The largest block that begins at a multiple of its own size and ends within the region.
        const auto fitting = static_cast<std::uint32_t>(std::bit_width(units - unit)) - 1U;
        const std::uint32_t aligned = unit == 0 ? kClasses : static_cast<std::uint32_t>(std::countr_zero(unit));
        const std::uint32_t size_class = std::min({fitting, aligned, kClasses - 1});
        push_free(unit, size_class);
        unit += Unit{1} << size_class;
    }
}

void BufferPool::check_invariants() const noexcept {
    std::uint64_t lent = 0;
    std::uint64_t lent_bytes = 0;
    std::array<std::uint64_t, kClasses> free_blocks{};
    std::array<std::uint64_t, kClasses> kept_blocks{};
    Unit unit = 0;
    while (unit < tags_.size()) {
        const Tag tag = tags_[unit];
        CAIRN_ASSERT(tag != kInside);
        const auto size_class = static_cast<std::uint32_t>(tag & kClassMask);
        CAIRN_ASSERT(size_class < kClasses);
        const Unit size = Unit{1} << size_class;
        CAIRN_ASSERT(unit % size == 0 && size <= tags_.size() - unit);
        for (Unit i = 1; i < size; ++i) {
            CAIRN_ASSERT(tags_[unit + i] == kInside);
        }
        const bool is_free = (tag & kFreeFlag) != 0;
        const bool is_kept = (tag & kKeptFlag) != 0;
        CAIRN_ASSERT(!(is_free && is_kept));
        free_blocks[size_class] += is_free ? 1U : 0U;
        kept_blocks[size_class] += is_kept ? 1U : 0U;
        lent += !is_free && !is_kept ? 1U : 0U;
        lent_bytes += !is_free && !is_kept ? std::uint64_t{size} * kSmallestBytes : 0U;
        unit += size;
    }
    CAIRN_ASSERT(lent == live_buffers_ && lent_bytes == live_bytes_);
    for (std::uint32_t i = 0; i < kClasses; ++i) {
        CAIRN_ASSERT(kept_blocks[i] == kept_[i].count);
        for (Unit at = free_[i]; at != kNone; at = links(at).next) {
            CAIRN_ASSERT(free_blocks[i] > 0);  // also ends a list that runs in a circle
            --free_blocks[i];
        }
        CAIRN_ASSERT(free_blocks[i] == 0);
    }
}

}  // namespace cairn::mem
