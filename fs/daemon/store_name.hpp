// What a store's id says: which store of which file system it is, and what all stores of that have in common.
#pragma once

#include <compare>
#include <cstdint>

#include "fs/placement/placement.hpp"

namespace cairn::fs {

// A store that lies at another one's place, or that is missing, is found by it: names would be looked for elsewhere.
struct StoreName {
    static constexpr std::uint32_t kMostShards = kSlots;
    static constexpr unsigned kChanceBits = 39;
    static constexpr std::uint64_t kMostChance = (std::uint64_t{1} << kChanceBits) - 1;

    std::uint64_t file_system = 0;  // chance, at most kMostChance
    Spread spread = Spread::Even;
    std::uint32_t shards = 1;  // of the file system, 1 to kMostShards
    std::uint32_t number = 0;  // of this one, below that

    // Chance in the lower 39 bits, which begin the log of a new store: what lies behind it is no part of it.
    // mutants: fs-store-name-id
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

// The placement's key, by the word of it that clients are told.
[[nodiscard]] constexpr SipKey placement_key_of(std::uint64_t word) noexcept {
    return {word, ~word};
}

static_assert(StoreName::of(StoreName{StoreName::kMostChance, Spread::Koyama, 4096, 4095}.id()) ==
              StoreName{StoreName::kMostChance, Spread::Koyama, 4096, 4095});

}  // namespace cairn::fs
