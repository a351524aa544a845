// The meaning of a store's id: which store of which file system it is, and what all its stores have in common.
#pragma once

#include <compare>
#include <cstdint>

#include "fs/placement/placement.hpp"

namespace cairn::fs {

// The name shows a store that lies at another store's place, or that is missing. Otherwise names would be looked for
// elsewhere.
struct StoreName {
    static constexpr std::uint32_t kMostShards = kSlots;
    static constexpr unsigned kChanceBits = 39;
    static constexpr std::uint64_t kMostChance = (std::uint64_t{1} << kChanceBits) - 1;

    std::uint64_t file_system = 0;  // random, at most kMostChance
    Spread spread = Spread::Even;
    std::uint32_t shards = 1;  // of the file system, 1 to kMostShards
    std::uint32_t number = 0;  // this store's, less than `shards`

    // Returns the id. Its lower 39 bits are random. They begin the log of a new store, so that old bytes do not
    // continue the log.
    [[nodiscard]] constexpr std::uint64_t id() const noexcept {
        return std::uint64_t{spread == Spread::Koyama} << 63U | std::uint64_t{shards - 1} << 51U |
               std::uint64_t{number} << kChanceBits | file_system;
    }
    [[nodiscard]] static constexpr StoreName of(std::uint64_t id) noexcept {
        return {id & kMostChance, id >> 63U != 0 ? Spread::Koyama : Spread::Even,
                static_cast<std::uint32_t>(id >> 51U & 0xfffU) + 1,
                static_cast<std::uint32_t>(id >> kChanceBits & 0xfffU)};
    }
    friend constexpr bool operator==(const StoreName&, const StoreName&) noexcept = default;
};

// Returns the placement's key for the word that clients get.
[[nodiscard]] constexpr SipKey placement_key_of(std::uint64_t word) noexcept {
    return {word, ~word};
}

static_assert(StoreName::of(StoreName{StoreName::kMostChance, Spread::Koyama, 4096, 4095}.id()) ==
              StoreName{StoreName::kMostChance, Spread::Koyama, 4096, 4095});

}  // namespace cairn::fs
