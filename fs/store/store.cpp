// A store's changes, data and space.
#include "fs/store/store.hpp"

#include <algorithm>

namespace cairn::fs {

namespace {

// Units of the log that growing changes leave to changes that give space back, and the latter leave to cleaning. The
// more live records a log has, the more dead ones it has when cleaning pays. That is why growing leaves this many.
constexpr std::size_t kLeftByGrowing = 8;
constexpr std::size_t kLeftByShrinking = 4;
constexpr std::size_t kLeftByMarks = 2;
constexpr std::uint64_t kTrueForOneMore = 8;

void give_back(BlockMap& map, const BlockRun& run) {
    const bool was_taken = map.give_back(run);
    CAIRN_ASSERT(was_taken);
}

}  // namespace

StoreUse Store::use() const noexcept {
    return {layout_.blocks - layout_.first_unit() * kUnitBlocks,
            map_.free_blocks(),
            static_cast<std::uint32_t>(log_.units().size()),
            tables_.live_bytes(),
            cleaner_.is_due(),
            cleaner_.pace(),
            cleaner_.is_stuck()};
}

bool Store::has_room(std::size_t bytes, Need need) noexcept {
    const std::size_t more = tables_.live_bytes() / kUnitBytes / kTrueForOneMore;
    log_.keep(Log::kUnitsKept + more);
    const std::size_t left = need == Need::Grows     ? kLeftByGrowing + more
                             : need == Need::Shrinks ? kLeftByShrinking
                                                     : kLeftByMarks;
    return log_.has_room(bytes, left);
}

bool Store::apply(Change& change, Need need) {
    if (!has_room(change.records().size(), need)) {
        discard(change);
        return false;
    }
    std::uint64_t at = log_.append(change.records());
    RecordReader reader(change.records());
    while (const std::optional<Record> record = reader.next()) {
        const auto bytes = static_cast<std::uint32_t>(reader.raw().size());
        tables_.apply(*record, {at, bytes}, freed_);
        at += bytes;
    }
    CAIRN_ASSERT(!reader.failed());
    change.clear();
    return true;
}

void Store::discard(Change& change) {
    for (const BlockRun& run : change.brought()) {
        give_back(map_, run);
    }
    change.clear();
}

// Data are durable before the records that show them. Blocks become free after the records that no longer show them.
void Store::commit() {
    if (data_unfenced_) {
        medium_.fence();
        data_unfenced_ = false;
    }
    if (log_.is_staged()) {
        log_.commit();
    }
    if (!is_paged()) {
        free_blocks();
    }
}

void Store::free_blocks() {
    for (const BlockRun& run : freed_) {
        holds_.free(run);
    }
    freed_.clear();
}

// Pages reach the medium in any order. So freed space is used only once the records that free it are on the medium.
// Entries after the last Synced are believed only as far as their data are there.
Status Store::sync() {
    commit();
    if (!is_paged()) {
        return Nothing{};
    }
    if (Status synced = medium_.sync(); !synced.ok()) {
        return synced;
    }
    free_blocks();
    if (cleaner_.name_next()) {
        if (Status synced = medium_.sync(); !synced.ok()) {
            return synced;
        }
        cleaner_.give_back();
        (void)log_.refill();
    }
    Change mark;
    mark.put(Synced{});
    if (apply(mark, Need::Shrinks)) {
        commit();
    }
    return Nothing{};
}

bool Store::clean(std::uint32_t bytes) {
    if (!cleaner_.is_due()) {
        return false;
    }
    commit();
    cleaner_.step(bytes);
    commit();
    if (is_paged()) {
        return cleaner_.is_due() && !cleaner_.is_at_end();
    }
    if (cleaner_.name_next()) {
        cleaner_.give_back();
        (void)log_.refill();
    }
    return cleaner_.is_due();
}

std::optional<PendingWrite> Store::begin_write(const ChunkId& chunk, std::uint64_t generation, std::uint32_t offset,
                                               std::uint32_t bytes) {
    CAIRN_ASSERT(bytes != 0 && offset < chunk_bytes() && bytes <= chunk_bytes() - offset);
    PendingWrite write;
    write.chunk = chunk;
    write.generation = generation;
    write.offset = offset;
    write.bytes = bytes;
    std::uint32_t left = write.end_block() - write.first_block();
    if (left + kBlocksForCuts > map_.free_blocks()) {
        return std::nullopt;
    }
    write.summed.resize(left);
    while (left != 0) {
        write.runs.push_back(*map_.allocate(left));
        left -= write.runs.back().count;
    }
    return write;
}

void Store::finish_write(PendingWrite& write, Change& change) {
    const ChunkState* const state = tables_.chunk(write.chunk);
    const bool goes_on = state != nullptr && state->generation == write.generation;
    const std::span<const Extent> before =
        goes_on ? std::span<const Extent>(state->extents) : std::span<const Extent>{};
    data_.complete(write, before);
    data_unfenced_ = true;
    const std::vector<Extent> extents = overlay(before, write.first_block(), write.runs);
    change.put(Chunk{write.chunk, write.generation, extents});
    for (const BlockRun& run : write.runs) {
        change.bring(run);
    }
    write.runs.clear();
}

void Store::give_up(PendingWrite& write) {
    for (const BlockRun& run : write.runs) {
        give_back(map_, run);
    }
    write.runs.clear();
}

bool Store::cut(const ChunkId& chunk, std::uint64_t generation, std::uint32_t bytes, Change& change) {
    const ChunkState* const state = tables_.chunk(chunk);
    if (state == nullptr) {
        return true;
    }
    const std::uint32_t whole = bytes / kBlockBytes;
    std::vector<Extent> extents = cut_off(state->extents, whole);
    const std::vector<Extent> with_last = cut_off(state->extents, whole + 1);
    if (bytes % kBlockBytes != 0 && !with_last.empty() &&
        with_last.back().at + with_last.back().run.count == whole + 1) {
        const std::optional<BlockRun> last = map_.allocate(1);
        if (!last) {
            return false;
        }
        const BlockRun& old = with_last.back().run;
        data_.copy_beginning(last->first, old.first + old.count - 1, bytes % kBlockBytes);
        data_unfenced_ = true;
        extents = overlay(extents, whole, {&*last, 1});
        change.bring(*last);
    }
    if (extents.empty()) {
        change.put(Gone{chunk});
    } else {
        change.put(Chunk{chunk, generation, extents});
    }
    return true;
}

bool Store::read(const ChunkId& chunk, std::uint32_t offset, std::span<std::uint8_t> to) const {
    const ChunkState* const state = tables_.chunk(chunk);
    return data_.read(state == nullptr ? std::span<const Extent>{} : std::span<const Extent>(state->extents), offset,
                      to);
}

Scrubbed Store::scrub(const ChunkId& chunk, std::uint32_t from, std::uint32_t most) const {
    Scrubbed done;
    const ChunkState* const state = tables_.chunk(chunk);
    for (std::size_t i = 0; state != nullptr && i != state->extents.size(); ++i) {
        const Extent& extent = state->extents[i];
        for (std::uint32_t at = std::max(from, extent.at); at < extent.at + extent.run.count; ++at) {
            if (done.blocks == most) {
                done.next = at;
                return done;
            }
            ++done.blocks;
            done.damaged += data_.is_sound(extent.run.first + (at - extent.at)) ? 0U : 1U;
        }
    }
    return done;
}

Hold Store::hold(const ChunkId& chunk, std::uint32_t offset, std::uint32_t bytes) {
    Hold hold;
    const std::uint32_t first = offset / kBlockBytes;
    const std::uint32_t end = (offset + bytes + kBlockBytes - 1) / kBlockBytes;
    const ChunkState* const state = tables_.chunk(chunk);
    for (std::size_t i = 0; state != nullptr && i != state->extents.size(); ++i) {
        const Extent& extent = state->extents[i];
        const std::uint32_t from = std::max(extent.at, first);
        const std::uint32_t to = std::min(extent.at + extent.run.count, end);
        if (from < to) {
            hold.runs.push_back({extent.run.first + (from - extent.at), to - from});
            holds_.add(hold.runs.back());
        }
    }
    return hold;
}

void Store::release(Hold& hold) {
    for (const BlockRun& run : hold.runs) {
        holds_.release(run);
    }
    hold.runs.clear();
}

}  // namespace cairn::fs
