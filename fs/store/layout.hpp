// The layout of a store's region.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "fs/medium/medium.hpp"
#include "fs/store/blocks.hpp"
#include "lib/base/result.hpp"

namespace cairn::fs {

// Copies of the superblock, then the blocks' checksums, then units.
struct Layout {
    static constexpr std::uint32_t kSuperblocks = 2;
    static constexpr std::uint64_t kLeastBytes = 16U << 20U;
    static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 44U;

    std::uint32_t blocks = 0;  // in the region, whole units

    [[nodiscard]] static std::optional<Layout> of(std::uint64_t region_bytes) noexcept {
        if (region_bytes < kLeastBytes || region_bytes >= kMostBytes) {
            return std::nullopt;
        }
        return Layout{static_cast<std::uint32_t>(region_bytes / kUnitBytes * kUnitBlocks)};
    }
    [[nodiscard]] std::uint64_t checksums_at() const noexcept { return std::uint64_t{kSuperblocks} * kBlockBytes; }
    [[nodiscard]] std::uint64_t checksum_at(std::uint32_t block) const noexcept {
        return checksums_at() + std::uint64_t{block} * sizeof(std::uint32_t);
    }
    // Returns the first unit after the checksums.
    [[nodiscard]] std::uint32_t first_unit() const noexcept {
        return static_cast<std::uint32_t>((checksum_at(blocks) + kUnitBytes - 1) / kUnitBytes);
    }
    [[nodiscard]] std::uint32_t units() const noexcept { return blocks / kUnitBlocks; }
};

// The block at a store's beginning.
struct Superblock {
    std::uint64_t edition = 0;  // counts up
    std::uint32_t blocks = 0;
    std::uint32_t chunk_bytes = 0;
    std::uint64_t store_id = 0;     // belongs to this store alone
    std::uint64_t name_key = 0;     // the key of the names' hashes
    std::uint32_t oldest_unit = 0;  // of the log
    std::uint32_t seed = 0;         // of that unit's first entry
    std::uint64_t number = 0;       // of that entry
};

enum class SuperblockFault : std::uint8_t { None, NoStore, OtherVersion, Damaged };

// Finds the newer of the valid superblocks.
[[nodiscard]] SuperblockFault read_superblock(std::span<const std::uint8_t> region, Superblock& found) noexcept;
// Counts the edition up. Writes the superblock over the older copy, flushed and fenced.
void write_superblock(Medium& medium, Superblock& superblock) noexcept;

}  // namespace cairn::fs
