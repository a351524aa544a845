// The time that a call has left. Its caller sends it to the server, since there is no common clock.
#pragma once

#include <cstdint>

#include "lib/base/time.hpp"

namespace cairn::rpc {

constexpr std::uint32_t kNoTimeLimit = 0;
constexpr std::uint32_t kMostTimeLeft = 0xffffffff;  // microseconds or more; the server then checks no deadline

// Returns the deadline of a call that had `left_us` microseconds left at `since`.
[[nodiscard]] constexpr Instant deadline_of(std::uint32_t left_us, Instant since) noexcept {
    const bool is_counted = left_us != kNoTimeLimit && left_us != kMostTimeLeft;
    return is_counted ? since + microseconds(left_us) : Instant::never();
}

}  // namespace cairn::rpc
