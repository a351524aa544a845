// Times of the connection manager. What a peer asks for is bounded, so that it can not make us keep things for hours.
#pragma once

#include <algorithm>

#include "lib/cm/types.hpp"

namespace cairn::cm {

constexpr wire::CmTimeout kLongestResponse{20};  // 4.3 s, what Linux asks for
constexpr wire::CmTimeout kLongestService{24};   // 69 s, what Linux asks for
constexpr wire::CmTimeout kLongestTimeWait{20};  // 4.3 s
constexpr Duration kDatagramAnswersKept = seconds(5);

// A request may name a host that never sent it. Until the host answers it is sent at most so many messages for each
// request, which is as long as they are, and no more than that are saved up.
constexpr std::uint8_t kMostPerRequest = 3;
constexpr std::uint8_t kMostSavedUp = 15;
// So often an answer to a reply is waited for, no longer at a time; after the last copy, twice as long.
constexpr std::uint8_t kMostReplyCopies = 4;
constexpr Duration kLongestReplyWait = seconds(1);
// So long a reply keeps its place from others that want it.
constexpr Duration kTimeToAnswer = milliseconds(100);
// Nobody confirms that we are ready: it is said again so often, in case it was lost.
constexpr std::uint8_t kReadyCopies = 2;

// Twice the way and the time that the other end has to answer (IBTA vol. 1, 12.9.8).
[[nodiscard]] constexpr Duration response_wait(const Config& config, wire::CmTimeout response_timeout) noexcept {
    return wire::duration_of(std::min(response_timeout, kLongestResponse)) +
           wire::duration_of(config.packet_lifetime) * 2;
}

// Half of what the peer waits: in time for it to hear that it must wait longer.
[[nodiscard]] constexpr Duration half_of(wire::CmTimeout response_timeout) noexcept {
    return wire::duration_of(std::min(response_timeout, kLongestResponse)) / 2;
}

// The code nearest to twice the way and `ack_delay` from above: two powers of two are one when they are far apart.
[[nodiscard]] constexpr wire::CmTimeout ack_timeout_of(wire::CmTimeout lifetime, wire::CmTimeout ack_delay) noexcept {
    const int both_ways = lifetime.value + 1;
    const int larger = std::max<int>(both_ways, ack_delay.value);
    const int smaller = std::min<int>(both_ways, ack_delay.value);
    return wire::CmTimeout{static_cast<std::uint8_t>(std::min(larger + (smaller + 1 >= larger ? 1 : 0), 31))};
}
static_assert(ack_timeout_of(wire::CmTimeout{18}, wire::CmTimeout{15}) == wire::CmTimeout{19});
static_assert(ack_timeout_of(wire::CmTimeout{14}, wire::CmTimeout{15}) == wire::CmTimeout{16});

}  // namespace cairn::cm
