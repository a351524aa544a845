#include "fs/placement/slot_table.hpp"

#include <bit>
#include <cstring>

#include "lib/base/assert.hpp"

namespace cairn::fs {

namespace {

static_assert(std::endian::native == std::endian::little);

// The head of a table. For each slot in turn follow the number of owners (one) and the owner.
struct RawTable {
    std::uint32_t magic;
    std::uint32_t shards;
    std::uint64_t epoch;
};
static_assert(sizeof(RawTable) == 16);

struct RawOwners {
    std::uint16_t count;
    std::uint16_t first;
};
static_assert(sizeof(RawOwners) == 4);

constexpr std::uint32_t kMagic = 0x746c5343;  // "CSlt"
constexpr std::size_t kBytes = sizeof(RawTable) + kSlots * sizeof(RawOwners);

}  // namespace

SlotTable::SlotTable(std::uint32_t shards) : shards_(shards) {
    CAIRN_ASSERT(shards != 0 && shards <= kSlots);
    for (std::uint32_t slot = 0; slot != kSlots; ++slot) {
        owners_[slot] = static_cast<ShardNumber>(slot % shards);
    }
}

ShardNumber SlotTable::owner(std::uint16_t slot) const noexcept {
    CAIRN_ASSERT(slot < kSlots);
    return owners_[slot];
}

void SlotTable::give(std::uint16_t slot, ShardNumber to) noexcept {
    CAIRN_ASSERT(slot < kSlots && to < shards_);
    owners_[slot] = to;
    ++epoch_;
}

std::vector<std::uint8_t> SlotTable::bytes() const {
    std::vector<std::uint8_t> bytes(kBytes);
    const RawTable raw{kMagic, shards_, epoch_};
    std::memcpy(bytes.data(), &raw, sizeof(raw));
    for (std::uint32_t slot = 0; slot != kSlots; ++slot) {
        const RawOwners owners{1, owners_[slot]};
        std::memcpy(bytes.data() + sizeof(raw) + slot * sizeof(owners), &owners, sizeof(owners));
    }
    return bytes;
}

std::optional<SlotTable> SlotTable::parse(std::span<const std::uint8_t> bytes) {
    RawTable raw{};
    if (bytes.size() != kBytes) {
        return std::nullopt;
    }
    std::memcpy(&raw, bytes.data(), sizeof(raw));
    if (raw.magic != kMagic || raw.shards == 0 || raw.shards > kSlots || raw.epoch == 0) {
        return std::nullopt;
    }
    SlotTable table(raw.shards);
    table.epoch_ = raw.epoch;
    for (std::uint32_t slot = 0; slot != kSlots; ++slot) {
        RawOwners owners{};
        std::memcpy(&owners, bytes.data() + sizeof(raw) + slot * sizeof(owners), sizeof(owners));
        if (owners.count != 1 || owners.first >= raw.shards) {
            return std::nullopt;
        }
        table.owners_[slot] = owners.first;
    }
    return table;
}

}  // namespace cairn::fs
