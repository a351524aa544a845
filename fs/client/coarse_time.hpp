// A cheap clock with a resolution of some milliseconds.
#pragma once

#include <ctime>

#include "lib/base/time.hpp"

namespace cairn::fs {

[[nodiscard]] inline Instant coarse_now() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return {now.tv_sec * 1'000'000'000 + now.tv_nsec};
}

}  // namespace cairn::fs
