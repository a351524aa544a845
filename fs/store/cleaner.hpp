// Cleans the log: takes its oldest units, and stages what is still true in them anew.
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

    // True if the log is much larger than what is true in it, or if units run out and some have what is not.
    [[nodiscard]] bool is_due() const noexcept;
    // How many bytes of the log have one in them, on average, that is no longer true; and one more.
    [[nodiscard]] std::uint32_t pace() const noexcept;
    // Reads about so many bytes of the oldest unit. What it stages is to be committed.
    void step(std::uint32_t bytes);
    // What was staged is durable. Writes the superblock, which names the next unit as the oldest, if all of this one
    // was read. Returns whether.
    [[nodiscard]] bool name_next() noexcept;
    // The superblock is durable. The unit that it named before is free.
    void give_back() noexcept;
    // All of the oldest unit was read: it is to be given back before anything else is done.
    [[nodiscard]] bool is_at_end() const noexcept { return at_end_; }
    // An entry of the log could not be read any more: cleaning has stopped.
    [[nodiscard]] bool is_stuck() const noexcept { return stuck_; }

private:
    void read(std::span<const std::uint8_t> records);
    void stage();

    Medium& medium_;
    Superblock& superblock_;
    BlockMap& map_;
    Log& log_;
    Tables& tables_;
    std::optional<EntryReader> reader_;  // of the oldest unit
    std::vector<std::uint8_t> moved_;    // records
    bool at_end_ = false;                // of the oldest unit
    bool stuck_ = false;
};

}  // namespace cairn::fs
