// Every limit and default of eRPC in one place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/time.hpp"
#include "lib/roce/pace/congestion_control.hpp"
#include "lib/roce/pace/round_trip.hpp"
#include "rpc/common/msg_buffer.hpp"

namespace cairn::erpc {

constexpr std::uint8_t kHeaderVersion = 4;     // of data and control packets
constexpr std::uint32_t kSlotsPerSession = 8;  // requests in flight per session (power of two)
constexpr std::uint32_t kDefaultCredits = 32;  // packets in flight per session
constexpr std::uint32_t kMaxCredits = 128;
constexpr std::uint32_t kMaxSessions = 32768;  // per endpoint; session numbers are 16 bits on the wire
using rpc::kMaxMessageBytes;
constexpr std::uint32_t kTailBytes = 1024;  // payloads of at least this size are sent in place if the port can
using roce::kPacingBatch;
using roce::kPacingSlack;
constexpr std::uint64_t kRequestNumberMask = (std::uint64_t{1} << 44U) - 1;
// Returns the number of the slot's call after the one with `number`.
[[nodiscard]] constexpr std::uint64_t number_of_next(std::uint64_t number) noexcept {
    return (number + kSlotsPerSession) & kRequestNumberMask;
}
constexpr std::uint64_t kFirstRequestMask = kRequestNumberMask & ~std::uint64_t{kSlotsPerSession - 1};

using roce::kRtoMin;
constexpr Duration kOwnStall = microseconds(500);  // a longer gap between two looks at the time is a pause of our own
constexpr Duration kRtoMax = milliseconds(200);
constexpr Duration kControlRetry = milliseconds(10);
constexpr Duration kPingInterval = milliseconds(250);
constexpr Duration kPeerTimeout = seconds(2);  // silence after which a peer counts as dead
constexpr Duration kLeastPeerTimeout = kControlRetry * 2;
constexpr std::uint32_t kMostTransfers = 65536;
constexpr Duration kCookieLife = seconds(2);     // a client that connects returns the cookie within a round trip
constexpr std::uint32_t kFarewellTries = 16384;  // flushes of the port while an endpoint's end notifies its peers
constexpr std::size_t kResendsPerScan = 1024;    // lost requests that one scan sends again
constexpr std::size_t kSessionsPerScan = 1024;
constexpr std::uint32_t kControlsPerScan = 64;
constexpr std::size_t kMessageScan = 8;           // sessions whose old messages one scan checks
constexpr std::size_t kMessageScanPressed = 128;  // the same while memory is wanted
constexpr Duration kScanInterval = microseconds(500);

static_assert((kSlotsPerSession & (kSlotsPerSession - 1)) == 0, "a request's slot is its number's low bits");

}  // namespace cairn::erpc
