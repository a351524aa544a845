// The report of a history that ends the program: its seed, the command that replays it, and the last frames.
#pragma once

#include <cstddef>
#include <cstdint>

#include "apps/sim/history.hpp"

namespace cairn::simulate {

constexpr std::size_t kMaxUnderWay = 256;

// Marks, while it exists, that its thread runs this seed's history: a failed assertion or a crash of the thread is
// reported with the seed. There are at most kMaxUnderWay at a time, one per thread.
class UnderWay {
public:
    // Begins the mark. `options` outlives the program's threads.
    UnderWay(std::uint64_t seed, const Options& options) noexcept;
    ~UnderWay();
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

    // Sets the world whose frames a report is to hold, while it exists; nullptr before and after.
    void set_world(const History* world) noexcept;
};

// Reports crashes from now on. For a signal to a thread without a world, it names all seeds under way.
void report_crashes() noexcept;

}  // namespace cairn::simulate
