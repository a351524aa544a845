// Blocks that are still read, though they may belong to no chunk any more.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "fs/store/blocks.hpp"

namespace cairn::fs {

// The blocks of a part of a chunk, as they were when they were held.
struct Hold {
    std::vector<BlockRun> runs{};
};

// Counts the readers of blocks. The map outlives it.
class Holds {
public:
    explicit Holds(BlockMap& map) noexcept : map_(map) {}
    void add(const BlockRun& run) {
        for (std::uint32_t i = 0; i != run.count; ++i) {
            ++held_[run.first + i];
        }
    }
    // Ends a hold. Blocks that were freed during it are free now.
    void release(const BlockRun& run) {
        for (std::uint32_t i = 0; i != run.count; ++i) {
            const auto found = held_.find(run.first + i);
            CAIRN_ASSERT(found != held_.end());
            if ((--found->second & kCount) != 0) {
                continue;
            }
            if ((found->second & kFreed) != 0) {
                give_back(run.first + i);
            }
            held_.erase(found);
        }
    }
    // Frees blocks that belong to no chunk any more. Blocks that are still read are freed at their release.
    void free(const BlockRun& run) {
        for (std::uint32_t i = 0; i != run.count; ++i) {
            const auto found = held_.empty() ? held_.end() : held_.find(run.first + i);
            if (found == held_.end()) {
                give_back(run.first + i);
            } else {
                found->second |= kFreed;
            }
        }
    }
    [[nodiscard]] std::size_t freed_and_held() const noexcept {
        std::size_t count = 0;
        for (const auto& [block, state] : held_) {
            count += (state & kFreed) != 0 ? 1U : 0U;
        }
        return count;
    }

private:
    static constexpr std::uint32_t kFreed = 1U << 31U;
    static constexpr std::uint32_t kCount = kFreed - 1;
    void give_back(std::uint32_t block) {
        const bool was_taken = map_.give_back({block, 1});
        CAIRN_ASSERT(was_taken);
    }

    BlockMap& map_;
    absl::flat_hash_map<std::uint32_t, std::uint32_t> held_;  // by block: number of readers, and whether it was freed
};

}  // namespace cairn::fs
