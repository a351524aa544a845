// The log: entries in a chain of units.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "fs/medium/medium.hpp"
#include "fs/store/blocks.hpp"

namespace cairn::fs {

// The place of a record in the region.
struct LogSpot {
    std::uint64_t at = 0;
    std::uint32_t bytes = 0;

    friend bool operator==(const LogSpot&, const LogSpot&) noexcept = default;
};

// A unit of the log, and the state in which its first entry continues the chain.
struct LogUnit {
    std::uint32_t unit = 0;
    std::uint32_t seed = 0;    // the checksum of the entry before it
    std::uint64_t number = 0;  // the number of its first entry
};

// Reads the entries of a unit from the first one on.
class EntryReader {
public:
    EntryReader(std::span<const std::uint8_t> region, const LogUnit& unit) noexcept
        : region_(region), unit_(unit.unit), seed_(unit.seed), number_(unit.number) {}
    // Goes to the next entry. Returns its records, or nothing if no entry of this chain follows.
    [[nodiscard]] std::optional<std::span<const std::uint8_t>> next() noexcept;
    // The three below say where the next entry would stand, and what it would continue.
    [[nodiscard]] std::uint32_t offset() const noexcept { return offset_; }
    [[nodiscard]] std::uint32_t seed() const noexcept { return seed_; }
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
    [[nodiscard]] std::uint64_t place_of(std::span<const std::uint8_t> bytes) const noexcept {
        return static_cast<std::uint64_t>(bytes.data() - region_.data());
    }

private:
    std::span<const std::uint8_t> region_;
    std::uint32_t unit_;
    std::uint32_t offset_ = 0;
    std::uint32_t seed_;
    std::uint64_t number_;
};

// The writing end. Entries are staged in memory; commit() writes them to the medium. Units that the log will need are
// taken in advance. The medium and the map outlive the log.
class Log {
public:
    static constexpr std::uint32_t kUnitsKept = 10;  // at least; for changes that give space back, and cleaning
    static constexpr std::uint32_t kMostRecordBytes = 32768;  // in an entry

    Log(Medium& medium, BlockMap& map) : medium_(medium), map_(map) {}
    // Goes on after the last entry of the last unit. The units are in order; their blocks are taken.
    void open(std::deque<LogUnit> units, std::uint32_t offset, std::uint32_t seed, std::uint64_t number);

    // Sets how many units are taken in advance; at first kUnitsKept.
    void keep(std::size_t units) noexcept { wanted_ = units; }
    [[nodiscard]] bool lacks_units() const noexcept { return kept_.size() < wanted_; }
    // Takes units in advance. Returns how many it has.
    std::size_t refill();
    [[nodiscard]] std::size_t units_kept() const noexcept { return kept_.size(); }
    // True if an entry with records of `bytes` leaves `units_left` units for others.
    [[nodiscard]] bool has_room(std::size_t bytes, std::size_t units_left) noexcept;
    // Stages an entry. It has room (asserted). Returns where the records will stand.
    std::uint64_t append(std::span<const std::uint8_t> records);
    [[nodiscard]] bool is_staged() const noexcept { return !staged_.empty(); }
    // Writes all that is staged to the medium, which has it when this returns. The data that entries show were fenced
    // before.
    void commit() noexcept;

    [[nodiscard]] const std::deque<LogUnit>& units() const noexcept { return units_; }
    // Drops the oldest unit from the log. It is not the last one (asserted).
    void drop_oldest() noexcept;

private:
    struct Piece {
        std::uint64_t at = 0;   // place in the region
        std::size_t begin = 0;  // place in staged_
        std::size_t bytes = 0;
    };
    void stage(std::span<const std::uint8_t> records);
    void go_on();

    Medium& medium_;
    BlockMap& map_;
    std::deque<LogUnit> units_;
    std::vector<std::uint32_t> kept_;
    std::size_t wanted_ = kUnitsKept;
    std::uint32_t offset_ = 0;  // in the last unit
    std::uint32_t seed_ = 0;
    std::uint64_t number_ = 0;
    std::vector<std::uint8_t> staged_;
    std::vector<Piece> pieces_;
};

}  // namespace cairn::fs
