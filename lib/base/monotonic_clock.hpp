// The time of CLOCK_MONOTONIC, for code that does I/O. Pure code gets `now` as an argument.
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
