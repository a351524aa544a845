// The owners of the slots.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fs/placement/placement.hpp"

namespace cairn::fs {

// The number of a daemon's shard in the file system.
using ShardNumber = std::uint16_t;

// Each slot has one owner; the format has room for several. A table with a later epoch replaces an earlier one.
class SlotTable {
public:
    // Makes the first table: shard s modulo `shards` owns slot s. `shards` is 1 to kSlots (asserted).
    explicit SlotTable(std::uint32_t shards);

    [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
    [[nodiscard]] std::uint32_t shards() const noexcept { return shards_; }
    // Returns the owner of a slot. `slot` is below kSlots (asserted).
    [[nodiscard]] ShardNumber owner(std::uint16_t slot) const noexcept;
    // Gives the slot to another owner, and begins the next epoch.
    void give(std::uint16_t slot, ShardNumber to) noexcept;

    // Returns the form that is sent and stored: little-endian.
    [[nodiscard]] std::vector<std::uint8_t> bytes() const;
    // Returns nothing if these bytes are no table.
    [[nodiscard]] static std::optional<SlotTable> parse(std::span<const std::uint8_t> bytes);

    friend bool operator==(const SlotTable&, const SlotTable&) noexcept = default;

private:
    std::uint64_t epoch_ = 1;
    std::uint32_t shards_;
    std::array<ShardNumber, kSlots> owners_{};
};

}  // namespace cairn::fs
