// How stores are made and opened.
#include <fmt/format.h>

#include "fs/store/store.hpp"

namespace cairn::fs {

namespace {

constexpr const char* kRemedy = "restore it from a copy, or make a new store there";

std::string refusal_of(SuperblockFault fault) {
    switch (fault) {
        case SuperblockFault::OtherVersion:
            return "the store is of another version of Cairn";
        case SuperblockFault::Damaged:
            return "both superblocks of the store are damaged";
        case SuperblockFault::NoStore:
        case SuperblockFault::None:
            break;
    }
    return "there is no store";
}

// Returns the number of the last entry before which all entries, and their data, were on the medium; 0 if there is
// none.
std::uint64_t last_synced(std::span<const std::uint8_t> region, const Superblock& superblock) {
    std::uint64_t last = 0;
    EntryReader reader(region, {superblock.oldest_unit, superblock.seed, superblock.number});
    while (const std::optional<std::span<const std::uint8_t>> entry = reader.next()) {
        RecordReader records(*entry);
        std::optional<std::uint32_t> next;
        while (const std::optional<Record> record = records.next()) {
            last = std::holds_alternative<Synced>(*record) ? reader.number() - 1 : last;
            const auto* const goes_on = std::get_if<NextUnit>(&*record);
            next = goes_on != nullptr ? std::optional(goes_on->unit) : next;
        }
        if (next && *next < region.size() / kUnitBytes) {
            reader = EntryReader(region, {*next, reader.seed(), reader.number()});
        }
    }
    return last;
}

}  // namespace

Store::Store(Medium& medium, const Superblock& superblock, const Layout& layout)
    : medium_(medium),
      superblock_(superblock),
      layout_(layout),
      map_(layout.blocks),
      holds_(map_),
      log_(medium, map_),
      tables_(superblock.name_key),
      cleaner_(medium, superblock_, map_, log_, tables_),
      data_(medium, layout) {
    const std::uint32_t first = layout.first_unit() * kUnitBlocks;
    const bool were_taken = map_.give_back({first, layout.blocks - first});
    CAIRN_ASSERT(were_taken);
}

Result<std::unique_ptr<Store>> Store::format(Medium& medium, const StoreShape& shape) {
    const std::optional<Layout> layout = Layout::of(medium.memory().size());
    if (!layout) {
        return Error{fmt::format("a store of {} bytes is out of range", medium.memory().size()),
                     fmt::format("choose {} to {}", Layout::kLeastBytes, Layout::kMostBytes - 1)};
    }
    if (!StoreShape::is_valid(shape.chunk_bytes)) {
        return Error{fmt::format("chunks of {} bytes are out of range", shape.chunk_bytes),
                     fmt::format("choose a power of two from {} to {}", StoreShape::kLeastChunkBytes,
                                 StoreShape::kMostChunkBytes)};
    }
    Superblock superblock;
    superblock.blocks = layout->blocks;
    superblock.chunk_bytes = shape.chunk_bytes;
    superblock.store_id = shape.store_id;
    superblock.name_key = shape.name_key;
    superblock.seed = static_cast<std::uint32_t>(shape.store_id);
    superblock.number = 1;
    std::unique_ptr<Store> store(new Store(medium, superblock, *layout));
    const std::uint32_t unit = *store->map_.allocate_unit();
    store->superblock_.oldest_unit = unit;
    store->log_.open({{unit, superblock.seed, superblock.number}}, 0, superblock.seed, superblock.number);
    (void)store->log_.refill();
    // Written twice, so that an older copy of a former store does not count.
    write_superblock(medium, store->superblock_);
    if (Status marked = store->mark_life(); !marked.ok()) {
        return marked.error();
    }
    return store;
}

Result<std::unique_ptr<Store>> Store::open(Medium& medium) {
    const std::optional<Layout> layout = Layout::of(medium.memory().size());
    Superblock superblock;
    const SuperblockFault fault = layout ? read_superblock(medium.memory(), superblock) : SuperblockFault::NoStore;
    if (fault != SuperblockFault::None) {
        return Error{refusal_of(fault), kRemedy};
    }
    if (superblock.blocks != layout->blocks) {
        return Error{fmt::format("the store has {} blocks, and its place {}", superblock.blocks, layout->blocks),
                     "give it all of its place, and nothing else"};
    }
    if (!StoreShape::is_valid(superblock.chunk_bytes)) {
        return Error{fmt::format("the store has chunks of {} bytes", superblock.chunk_bytes), kRemedy};
    }
    if (superblock.oldest_unit < layout->first_unit() || superblock.oldest_unit >= layout->units()) {
        return Error{"the store's log begins outside of it", kRemedy};
    }
    std::unique_ptr<Store> store(new Store(medium, superblock, *layout));
    if (Status recovered = store->recover(); !recovered.ok()) {
        return recovered.error();
    }
    return store;
}

Status Store::recover() {
    std::deque<LogUnit> units{{superblock_.oldest_unit, superblock_.seed, superblock_.number}};
    EntryReader reader(medium_.memory(), units.front());
    if (Status read = read_log(units, reader); !read.ok()) {
        return read.error();
    }
    if (Status taken = take_chunks(); !taken.ok()) {
        return taken.error();
    }
    log_.open(std::move(units), reader.offset(), reader.seed(), reader.number());
    (void)log_.refill();
    return mark_life();
}

Status Store::read_log(std::deque<LogUnit>& units, EntryReader& reader) {
    const auto owns = [this](std::uint32_t unit) { return map_.take({unit * kUnitBlocks, kUnitBlocks}); };
    if (!owns(units.front().unit)) {
        return Error{"the store's log begins outside of it", kRemedy};
    }
    const std::uint64_t believed = is_paged() ? last_synced(medium_.memory(), superblock_) : ~std::uint64_t{0};
    for (EntryReader before = reader;; before = reader) {
        const std::optional<std::span<const std::uint8_t>> entry = reader.next();
        if (!entry || (before.number() > believed && !has_its_data(*entry))) {
            reader = before;
            break;
        }
        RecordReader records(*entry);
        std::optional<std::uint32_t> next;
        while (const std::optional<Record> record = records.next()) {
            const LogSpot spot{reader.place_of(records.raw()), static_cast<std::uint32_t>(records.raw().size())};
            tables_.apply(*record, spot, freed_);
            const auto* const goes_on = std::get_if<NextUnit>(&*record);
            next = goes_on != nullptr ? std::optional(goes_on->unit) : next;
        }
        if (records.failed() || (next && (*next >= layout_.units() || !owns(*next)))) {
            return Error{fmt::format("entry {} of the store's log makes no sense", reader.number() - 1), kRemedy};
        }
        if (next) {
            units.push_back({*next, reader.seed(), reader.number()});
            reader = EntryReader(medium_.memory(), units.back());
        }
        freed_.clear();
    }
    return Nothing{};
}

bool Store::has_its_data(std::span<const std::uint8_t> entry) const {
    RecordReader records(entry);
    bool sound = true;
    while (const std::optional<Record> record = records.next()) {
        const auto* const chunk = std::get_if<Chunk>(&*record);
        sound = sound && (chunk == nullptr || data_.are_sound(chunk->extents));
    }
    return sound;
}

Status Store::take_chunks() {
    bool sound = true;
    tables_.chunks().for_each([&](const ChunkId&, const ChunkState& state) {
        for (const Extent& extent : state.extents) {
            sound = sound && extent.at + extent.run.count <= chunk_bytes() / kBlockBytes && map_.take(extent.run);
        }
    });
    return sound ? Status(Nothing{}) : Error{"two chunks of the store have one block", kRemedy};
}

// Makes this life's entries differ: old entries after the log's end then do not continue them.
Status Store::mark_life() {
    Change change;
    change.put(Life{superblock_.edition, superblock_.store_id});
    const bool applied = apply(change, Need::Marks);
    CAIRN_ASSERT(applied);
    commit();
    write_superblock(medium_, superblock_);
    return sync();
}

void Store::check(std::uint32_t pending) const {
    std::uint64_t taken = 0;
    tables_.chunks().for_each([&](const ChunkId&, const ChunkState& state) {
        std::uint32_t end = 0;
        for (const Extent& extent : state.extents) {
            CAIRN_ASSERT(extent.at >= end && extent.run.count != 0);
            end = extent.at + extent.run.count;
            for (std::uint32_t i = 0; i != extent.run.count; ++i) {
                CAIRN_ASSERT(!map_.is_free(extent.run.first + i));
            }
            taken += extent.run.count;
        }
        CAIRN_ASSERT(end <= chunk_bytes() / kBlockBytes);
    });
    for (const BlockRun& run : freed_) {
        taken += run.count;
    }
    taken += (log_.units().size() + log_.units_kept()) * kUnitBlocks + holds_.freed_and_held() + pending;
    CAIRN_ASSERT(taken + map_.free_blocks() == use().blocks);
}

}  // namespace cairn::fs
