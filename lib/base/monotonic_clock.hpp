// The clock of those who act. What they decide by is told the time.
#pragma once

#include <ctime>

#include "lib/base/time.hpp"

namespace cairn {

[[nodiscard]] inline Instant read_monotonic() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return {std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec};
}

}  // namespace cairn
