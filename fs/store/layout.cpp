#include "fs/store/layout.hpp"

#include <bit>
#include <cstring>

#include "fs/store/checksum.hpp"

namespace cairn::fs {

namespace {

static_assert(std::endian::native == std::endian::little, "what lies on a medium is little-endian");

constexpr std::uint64_t kMagic = 0x53466e7269614301U;
constexpr std::uint32_t kVersion = 1;

struct RawSuperblock {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t crc;  // of the fields after it
    std::uint64_t edition;
    std::uint64_t store_id;
    std::uint64_t name_key;
    std::uint64_t number;
    std::uint32_t blocks;
    std::uint32_t chunk_bytes;
    std::uint32_t oldest_unit;
    std::uint32_t seed;
};
static_assert(sizeof(RawSuperblock) == 64);  // one cache line

std::uint32_t crc_of(const RawSuperblock& raw) noexcept {
    constexpr std::size_t kFrom = offsetof(RawSuperblock, edition);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&raw);
    return crc32c(0, {bytes + kFrom, sizeof(raw) - kFrom});
}

}  // namespace

SuperblockFault read_superblock(std::span<const std::uint8_t> region, Superblock& found) noexcept {
    SuperblockFault fault = SuperblockFault::NoStore;
    bool any = false;
    for (std::uint32_t copy = 0; copy != Layout::kSuperblocks; ++copy) {
        RawSuperblock raw;
        std::memcpy(&raw, region.data() + std::size_t{copy} * kBlockBytes, sizeof(raw));
        if (raw.magic != kMagic) {
            continue;
        }
        if (raw.version != kVersion) {
            fault = SuperblockFault::OtherVersion;
            continue;
        }
        if (raw.crc != crc_of(raw)) {
            fault = fault == SuperblockFault::NoStore ? SuperblockFault::Damaged : fault;
            continue;
        }
        if (!any || raw.edition > found.edition) {
            found = {raw.edition,  raw.blocks,      raw.chunk_bytes, raw.store_id,
                     raw.name_key, raw.oldest_unit, raw.seed,        raw.number};
        }
        any = true;
    }
    return any ? SuperblockFault::None : fault;
}

void write_superblock(Medium& medium, Superblock& superblock) noexcept {
    ++superblock.edition;
    RawSuperblock raw{};
    raw.magic = kMagic;
    raw.version = kVersion;
    raw.edition = superblock.edition;
    raw.store_id = superblock.store_id;
    raw.name_key = superblock.name_key;
    raw.number = superblock.number;
    raw.blocks = superblock.blocks;
    raw.chunk_bytes = superblock.chunk_bytes;
    raw.oldest_unit = superblock.oldest_unit;
    raw.seed = superblock.seed;
    raw.crc = crc_of(raw);
    std::uint8_t* const at = medium.memory().data() + (superblock.edition % Layout::kSuperblocks) * kBlockBytes;
    std::memcpy(at, &raw, sizeof(raw));
    medium.flush(at, sizeof(raw));
    medium.fence();
}

}  // namespace cairn::fs
