// What a history that ends the program leaves behind: its seed, how to see it again, and the last frames.
#pragma once

#include <cstddef>
#include <cstdint>

#include "apps/sim/history.hpp"

namespace cairn::simulate {

constexpr std::size_t kMaxUnderWay = 256;

// While it lives, its thread lives through this seed's history: a failed assertion or a crash of the thread is
// reported as the seed's. At most kMaxUnderWay at a time, one per thread.
class UnderWay {
public:
    // `options` outlives the program's threads.
    UnderWay(std::uint64_t seed, const Options& options) noexcept;
    ~UnderWay();
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

    // The world whose frames a report is to hold, while it stands; nullptr before and after.
    void set_world(const History* world) noexcept;
};

// From now on. A signal to a thread without a world names the seeds of all that are under way.
void report_crashes() noexcept;

}  // namespace cairn::simulate
