#include "fs/store/blocks.hpp"

#include <algorithm>
#include <bit>

#include "lib/base/assert.hpp"

namespace cairn::fs {

BlockMap::BlockMap(std::uint32_t blocks) : free_(blocks / kUnitBlocks) {
    CAIRN_ASSERT(blocks % kUnitBlocks == 0);
}

bool BlockMap::are_all(const BlockRun& run, bool free) const noexcept {
    for (std::uint32_t at = run.first, left = run.count; left != 0;) {
        const std::uint32_t here = std::min(left, kUnitBlocks - at % kUnitBlocks);
        const std::uint64_t wanted = mask(at % kUnitBlocks, here);
        if ((free_[at / kUnitBlocks] & wanted) != (free ? wanted : 0)) {
            return false;
        }
        at += here;
        left -= here;
    }
    return true;
}

void BlockMap::set(const BlockRun& run, bool free) noexcept {
    for (std::uint32_t at = run.first, left = run.count; left != 0;) {
        const std::uint32_t here = std::min(left, kUnitBlocks - at % kUnitBlocks);
        free_[at / kUnitBlocks] ^= mask(at % kUnitBlocks, here);
        at += here;
        left -= here;
    }
    free_blocks_ = free ? free_blocks_ + run.count : free_blocks_ - run.count;
}

bool BlockMap::take(const BlockRun& run) noexcept {
    if (run.count > blocks() || run.first > blocks() - run.count || !are_all(run, true)) {
        return false;
    }
    set(run, false);
    return true;
}

bool BlockMap::give_back(const BlockRun& run) noexcept {
    if (run.count > blocks() || run.first > blocks() - run.count || !are_all(run, false)) {
        return false;
    }
    set(run, true);
    return true;
}

// Returns the first free block from `from` on; the search goes on at block 0 after the end.
std::optional<std::uint32_t> BlockMap::find_free(std::uint32_t from) const noexcept {
    const auto units = static_cast<std::uint32_t>(free_.size());
    const std::uint64_t behind = free_[from / kUnitBlocks] & (~std::uint64_t{0} << (from % kUnitBlocks));
    if (behind != 0) {
        return from / kUnitBlocks * kUnitBlocks + static_cast<std::uint32_t>(std::countr_zero(behind));
    }
    for (std::uint32_t i = 1; i <= units; ++i) {
        const std::uint32_t unit = (from / kUnitBlocks + i) % units;
        if (free_[unit] != 0) {
            return unit * kUnitBlocks + static_cast<std::uint32_t>(std::countr_zero(free_[unit]));
        }
    }
    return std::nullopt;
}

std::optional<BlockRun> BlockMap::allocate(std::uint32_t count) noexcept {
    CAIRN_ASSERT(count != 0);
    if (free_blocks_ == 0) {
        return std::nullopt;
    }
    const std::optional<std::uint32_t> first = find_free(next_);
    BlockRun run{*first, 0};
    while (run.count < count && run.first + run.count < blocks()) {
        const std::uint32_t at = run.first + run.count;
        const std::uint64_t rest = free_[at / kUnitBlocks] >> (at % kUnitBlocks);
        const auto ones = static_cast<std::uint32_t>(std::countr_one(rest));
        run.count += std::min(ones, count - run.count);
        if (ones != kUnitBlocks - at % kUnitBlocks) {
            break;
        }
    }
    set(run, false);
    next_ = (run.first + run.count) % blocks();
    return run;
}

// Searches from the end on, since data are placed from the beginning on.
std::optional<std::uint32_t> BlockMap::allocate_unit(std::uint32_t left) noexcept {
    const auto units = static_cast<std::uint32_t>(free_.size());
    for (std::uint32_t i = 0; i < units && free_blocks_ >= kUnitBlocks + left; ++i) {
        next_unit_ = next_unit_ == 0 ? units - 1 : next_unit_ - 1;
        if (free_[next_unit_] == ~std::uint64_t{0}) {
            set({next_unit_ * kUnitBlocks, kUnitBlocks}, false);
            return next_unit_;
        }
    }
    return std::nullopt;
}

}  // namespace cairn::fs
