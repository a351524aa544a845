#include "fs/store/log.hpp"

#include <array>
#include <cstring>
#include <utility>

#include "fs/store/checksum.hpp"
#include "fs/store/records.hpp"

namespace cairn::fs {

namespace {

struct RawEntry {
    std::uint32_t crc;    // of all bytes after it; continues that of the entry before
    std::uint32_t bytes;  // length of the records
    std::uint64_t number;
};
static_assert(sizeof(RawEntry) == 16);

constexpr std::uint32_t kNextBytes = sizeof(RawEntry) + 8;  // an entry that names the next unit

std::uint64_t begin_of(std::uint32_t unit) noexcept {
    return std::uint64_t{unit} * kUnitBytes;
}

}  // namespace

std::optional<std::span<const std::uint8_t>> EntryReader::next() noexcept {
    if (offset_ + sizeof(RawEntry) > kUnitBytes) {
        return std::nullopt;
    }
    const std::span<const std::uint8_t> rest = region_.subspan(begin_of(unit_) + offset_, kUnitBytes - offset_);
    RawEntry raw;
    std::memcpy(&raw, rest.data(), sizeof(raw));
    if (raw.number != number_ || raw.bytes == 0 || raw.bytes % 8 != 0 || raw.bytes > rest.size() - sizeof(raw)) {
        return std::nullopt;
    }
    const std::size_t whole = sizeof(raw) + raw.bytes;
    if (crc32c(seed_, rest.first(whole).subspan(sizeof(raw.crc))) != raw.crc) {
        return std::nullopt;
    }
    offset_ += static_cast<std::uint32_t>(whole);
    seed_ = raw.crc;
    ++number_;
    return rest.subspan(sizeof(raw), raw.bytes);
}

void Log::open(std::deque<LogUnit> units, std::uint32_t offset, std::uint32_t seed, std::uint64_t number) {
    CAIRN_ASSERT(!units.empty());
    units_ = std::move(units);
    offset_ = offset;
    seed_ = seed;
    number_ = number;
}

std::size_t Log::refill() {
    while (lacks_units()) {
        const std::optional<std::uint32_t> unit = map_.allocate_unit(kBlocksForCuts);
        if (!unit) {
            break;
        }
        kept_.push_back(*unit);
    }
    return kept_.size();
}

bool Log::has_room(std::size_t bytes, std::size_t units_left) noexcept {
    CAIRN_ASSERT(bytes <= kMostRecordBytes);
    const bool goes_on = offset_ + sizeof(RawEntry) + bytes + kNextBytes > kUnitBytes;
    const std::size_t needed = units_left + (goes_on ? 1 : 0);
    return kept_.size() >= needed || refill() >= needed;
}

std::uint64_t Log::append(std::span<const std::uint8_t> records) {
    CAIRN_ASSERT(!records.empty() && records.size() % 8 == 0 && records.size() <= kMostRecordBytes);
    if (offset_ + sizeof(RawEntry) + records.size() + kNextBytes > kUnitBytes) {
        go_on();
    }
    const std::uint64_t at = begin_of(units_.back().unit) + offset_ + sizeof(RawEntry);
    stage(records);
    return at;
}

void Log::go_on() {
    CAIRN_ASSERT(!kept_.empty());
    const std::uint32_t unit = kept_.back();
    kept_.pop_back();
    std::vector<std::uint8_t> record;
    put_record(record, NextUnit{unit});
    stage(record);
    units_.push_back({unit, seed_, number_});
    offset_ = 0;
}

void Log::stage(std::span<const std::uint8_t> records) {
    const std::uint64_t at = begin_of(units_.back().unit) + offset_;
    const std::size_t begin = staged_.size();
    RawEntry raw{0, static_cast<std::uint32_t>(records.size()), number_++};
    const auto* const header = reinterpret_cast<const std::uint8_t*>(&raw);
    staged_.insert(staged_.end(), header, header + sizeof(raw));
    staged_.insert(staged_.end(), records.begin(), records.end());
    seed_ = crc32c(seed_, std::span<const std::uint8_t>(staged_).subspan(begin + sizeof(raw.crc)));
    std::memcpy(staged_.data() + begin, &seed_, sizeof(seed_));
    const std::size_t bytes = sizeof(raw) + records.size();
    if (!pieces_.empty() && pieces_.back().at + pieces_.back().bytes == at) {
        pieces_.back().bytes += bytes;
    } else {
        pieces_.push_back({at, begin, bytes});
    }
    offset_ += static_cast<std::uint32_t>(bytes);
}

void Log::commit() noexcept {
    for (const Piece& piece : pieces_) {
        medium_.copy_nt(medium_.memory().data() + piece.at, staged_.data() + piece.begin, piece.bytes);
    }
    medium_.fence();
    pieces_.clear();
    staged_.clear();
}

void Log::drop_oldest() noexcept {
    CAIRN_ASSERT(units_.size() > 1);
    units_.pop_front();
}

}  // namespace cairn::fs
