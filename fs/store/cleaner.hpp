// Cleans the log: takes its oldest units, and stages again what is still true in them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fs/store/layout.hpp"
#include "fs/store/log.hpp"
#include "fs/store/tables.hpp"

namespace cairn::fs {

// All references outlive the object.
class Cleaner {
public:
    Cleaner(Medium& medium, Superblock& superblock, BlockMap& map, Log& log, Tables& tables) noexcept
        : medium_(medium), superblock_(superblock), map_(map), log_(log), tables_(tables) {}

    // True if the log is much larger than its live records. Also true if units run out, and some hold dead records.
    [[nodiscard]] bool is_due() const noexcept;
    // Returns how many bytes of the log hold one dead byte on average, plus one.
    [[nodiscard]] std::uint32_t pace() const noexcept;
    // Reads about `bytes` of the oldest unit. The caller then commits what was staged.
    void step(std::uint32_t bytes);
    // If all of the oldest unit was read, writes a superblock that names the next unit as the oldest, and returns true.
    // All that was staged is durable.
    [[nodiscard]] bool name_next() noexcept;
    // Frees the unit that the former superblock named. The new superblock is durable.
    void give_back() noexcept;
    // True if all of the oldest unit was read. That unit must be given back before anything else.
    [[nodiscard]] bool is_at_end() const noexcept { return at_end_; }
    // True if an entry of the log could not be read: cleaning has stopped.
    [[nodiscard]] bool is_stuck() const noexcept { return stuck_; }

private:
    void read(std::span<const std::uint8_t> records);
    void stage();

    Medium& medium_;
    Superblock& superblock_;
    BlockMap& map_;
    Log& log_;
    Tables& tables_;
    std::optional<EntryReader> reader_;  // for the oldest unit
    std::vector<std::uint8_t> moved_;    // records
    bool at_end_ = false;                // of the oldest unit
    bool stuck_ = false;
};

}  // namespace cairn::fs
