// The time of workers that sleep.
#pragma once

#include <chrono>

#include "lib/base/time.hpp"

namespace cairn::fs::test {

inline Instant clock_now() {
    return {std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count()};
}

}  // namespace cairn::fs::test
