#include "fs/store/cleaner.hpp"

#include <algorithm>

namespace cairn::fs {

namespace {

constexpr std::size_t kMovedBytes = 8192;  // per entry, unless a record is longer; wastes little in units

}  // namespace

bool Cleaner::is_due() const noexcept {
    const std::uint64_t units = log_.units().size();
    const std::uint64_t live_units = tables_.live_bytes() / kUnitBytes + 1;
    const bool scarce = log_.lacks_units();
    return !stuck_ && (units > 2 * live_units + 2 || (scarce && units > live_units + live_units / 16 + 2));
}

std::uint32_t Cleaner::pace() const noexcept {
    const std::uint64_t units = log_.units().size();
    const std::uint64_t live_units = std::min(units - 1, tables_.live_bytes() / kUnitBytes);
    return static_cast<std::uint32_t>(1 + units / (units - live_units));
}

// The records of one unit may need two units at their new place.
void Cleaner::step(std::uint32_t bytes) {
    if (log_.refill() < 2) {
        return;
    }
    if (!reader_) {
        reader_.emplace(medium_.memory(), log_.units().front());
    }
    for (std::uint32_t done = 0; done < bytes && !at_end_ && !stuck_;) {
        const std::optional<std::span<const std::uint8_t>> records = reader_->next();
        stuck_ = !records;
        if (records) {
            read(*records);
            done += static_cast<std::uint32_t>(records->size());
        }
    }
    stage();
}

// Stages the records that are still an object's state. A record of a removed object has no older record to hide, so it
// goes.
void Cleaner::read(std::span<const std::uint8_t> records) {
    RecordReader reader(records);
    while (const std::optional<Record> record = reader.next()) {
        const std::span<const std::uint8_t> raw = reader.raw();
        at_end_ = at_end_ || std::holds_alternative<NextUnit>(*record);
        if (tables_.is_live(*record, {reader_->place_of(raw), static_cast<std::uint32_t>(raw.size())})) {
            if (moved_.size() + raw.size() > kMovedBytes) {
                stage();
            }
            moved_.insert(moved_.end(), raw.begin(), raw.end());
        }
    }
    stuck_ = reader.failed();
}

void Cleaner::stage() {
    if (moved_.empty()) {
        return;
    }
    const bool has_room = log_.has_room(moved_.size(), 0);
    CAIRN_ASSERT(has_room);
    const std::uint64_t begin = log_.append(moved_);
    RecordReader reader(moved_);
    std::uint64_t at = begin;
    while (const std::optional<Record> record = reader.next()) {
        const auto bytes = static_cast<std::uint32_t>(reader.raw().size());
        tables_.move(*record, {at, bytes});
        at += bytes;
    }
    moved_.clear();
}

bool Cleaner::name_next() noexcept {
    if (!at_end_) {
        return false;
    }
    const LogUnit& next = log_.units()[1];
    superblock_.oldest_unit = next.unit;
    superblock_.seed = next.seed;
    superblock_.number = next.number;
    write_superblock(medium_, superblock_);
    return true;
}

void Cleaner::give_back() noexcept {
    const std::uint32_t unit = log_.units().front().unit;
    log_.drop_oldest();
    const bool was_taken = map_.give_back({unit * kUnitBlocks, kUnitBlocks});
    CAIRN_ASSERT(was_taken);
    reader_.reset();
    at_end_ = false;
}

}  // namespace cairn::fs
