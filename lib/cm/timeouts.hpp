// The times of the connection manager. The times that peers ask for are bounded, so that a peer cannot make the manager
// keep something for hours.
#pragma once

#include <algorithm>

#include "lib/cm/types.hpp"

namespace cairn::cm {

constexpr wire::CmTimeout kLongestResponse{20};  // 4.3 s, as Linux asks for
constexpr wire::CmTimeout kLongestService{24};   // 69 s, as Linux asks for
constexpr wire::CmTimeout kLongestTimeWait{20};  // 4.3 s
constexpr Duration kDatagramAnswersKept = seconds(5);

// A forged request may name a host that never sent it. Until the host proves that it receives, each request, copies
// included, permits this many messages to it, each as long as a request. A connection saves up kMostSavedUp at most.
constexpr std::uint8_t kMostPerRequest = 3;
constexpr std::uint8_t kMostSavedUp = 15;
// The number of copies of a reply, and the longest wait after each copy. The last copy waits twice as long.
constexpr std::uint8_t kMostReplyCopies = 4;
constexpr Duration kLongestReplyWait = seconds(1);
// The time for which a reply keeps its place while other requests want it.
constexpr Duration kTimeToAnswer = milliseconds(100);
// Nothing confirms an RTU. This many copies of it are sent, in case it was lost.
constexpr std::uint8_t kReadyCopies = 2;

// Returns twice the network's latency plus the other end's response time (IBTA vol. 1, 12.9.8).
[[nodiscard]] constexpr Duration response_wait(const Config& config, wire::CmTimeout response_timeout) noexcept {
    return wire::duration_of(std::min(response_timeout, kLongestResponse)) +
           wire::duration_of(config.packet_lifetime) * 2;
}

// Returns half of the peer's wait: early enough to ask it to wait longer.
[[nodiscard]] constexpr Duration half_of(wire::CmTimeout response_timeout) noexcept {
    return wire::duration_of(std::min(response_timeout, kLongestResponse)) / 2;
}

// Returns the code for twice the lifetime plus `ack_delay`, rounded up. Of two powers of two that are far apart only
// the larger counts.
[[nodiscard]] constexpr wire::CmTimeout ack_timeout_of(wire::CmTimeout lifetime, wire::CmTimeout ack_delay) noexcept {
    const int both_ways = lifetime.value + 1;
    const int larger = std::max<int>(both_ways, ack_delay.value);
    const int smaller = std::min<int>(both_ways, ack_delay.value);
    return wire::CmTimeout{static_cast<std::uint8_t>(std::min(larger + (smaller + 1 >= larger ? 1 : 0), 31))};
}
static_assert(ack_timeout_of(wire::CmTimeout{18}, wire::CmTimeout{15}) == wire::CmTimeout{19});
static_assert(ack_timeout_of(wire::CmTimeout{14}, wire::CmTimeout{15}) == wire::CmTimeout{16});

}  // namespace cairn::cm
