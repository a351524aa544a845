// The time that a call has left, as its caller tells the server. There is no common clock.
#pragma once

#include <cstdint>

#include "lib/base/time.hpp"

namespace cairn::rpc {

constexpr std::uint32_t kNoTimeLimit = 0;
constexpr std::uint32_t kMostTimeLeft = 0xffffffff;  // microseconds, or more: only the caller counts it

// Returns the deadline of a call that had so many microseconds left at a time.
// mutants: rpc-time-left-deadline-of
[[nodiscard]] constexpr Instant deadline_of(std::uint32_t left_us, Instant since) noexcept {
    const bool is_counted = left_us != kNoTimeLimit && left_us != kMostTimeLeft;
    return is_counted ? since + microseconds(left_us) : Instant::never();
}

}  // namespace cairn::rpc
