// What a history that ends the program leaves behind: its seed, how to see it again, and the last frames.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/sim/erpc_world.hpp"

namespace cairn::simulate {

constexpr std::size_t kMaxUnderWay = 256;

// While it lives, its thread lives through this world: a failed assertion or a crash of the thread is reported as
// this seed's. At most kMaxUnderWay at a time, one per thread.
class UnderWay {
public:
    UnderWay(std::uint64_t seed, bool small, const sim::ErpcWorld& world) noexcept;
    ~UnderWay();
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;
};

// From now on. A signal to a thread without a world names the seeds of all that are under way.
void report_crashes() noexcept;

}  // namespace cairn::simulate
