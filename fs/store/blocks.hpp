// Blocks of a store's region, and the map of free blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace cairn::fs {

constexpr std::uint32_t kBlockBytes = 4096;
constexpr std::uint32_t kUnitBlocks = 64;  // a unit's blocks are one word of the map
constexpr std::uint32_t kUnitBytes = kUnitBlocks * kBlockBytes;
// A cut within a block copies that block, also in a full store. So neither data nor the log take the last blocks.
constexpr std::uint32_t kBlocksForCuts = 16;

// Neighbouring blocks.
struct BlockRun {
    std::uint32_t first = 0;
    std::uint32_t count = 0;

    friend constexpr bool operator==(const BlockRun&, const BlockRun&) noexcept = default;
};

// A map with a bit for each block. Each run of data follows the last one, so data that are written together lie
// together. Data keep out of whole units that the log will need. Allocates only when made.
class BlockMap {
public:
    // Makes the map. All blocks are taken. `blocks` is a multiple of a unit (asserted).
    explicit BlockMap(std::uint32_t blocks);

    // Take blocks, or free them. Return false, and change nothing, if one of the blocks was so before.
    [[nodiscard]] bool take(const BlockRun& run) noexcept;
    [[nodiscard]] bool give_back(const BlockRun& run) noexcept;

    // Takes up to `count` neighbouring blocks. Returns nothing if none is free.
    [[nodiscard]] std::optional<BlockRun> allocate(std::uint32_t count) noexcept;
    // Takes a unit whose blocks are all free, if at least `left` other blocks stay free. Returns its number.
    [[nodiscard]] std::optional<std::uint32_t> allocate_unit(std::uint32_t left = 0) noexcept;

    [[nodiscard]] std::uint32_t blocks() const noexcept {
        return static_cast<std::uint32_t>(free_.size()) * kUnitBlocks;
    }
    [[nodiscard]] std::uint32_t free_blocks() const noexcept { return free_blocks_; }
    [[nodiscard]] bool is_free(std::uint32_t block) const noexcept {
        return ((free_[block / kUnitBlocks] >> (block % kUnitBlocks)) & 1U) != 0;
    }

private:
    [[nodiscard]] static std::uint64_t mask(std::uint32_t from, std::uint32_t count) noexcept {
        return (~std::uint64_t{0} >> (kUnitBlocks - count)) << from;
    }
    [[nodiscard]] bool are_all(const BlockRun& run, bool free) const noexcept;
    void set(const BlockRun& run, bool free) noexcept;
    [[nodiscard]] std::optional<std::uint32_t> find_free(std::uint32_t from) const noexcept;

    std::vector<std::uint64_t> free_;  // by unit
    std::uint32_t free_blocks_ = 0;
    std::uint32_t next_ = 0;       // where the last run ended
    std::uint32_t next_unit_ = 0;  // the search for units begins at the end
};

}  // namespace cairn::fs
