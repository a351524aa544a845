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
constexpr std::uint32_t kPacketOverheadBytes = 102;  // Ethernet, IPv4, UDP, BTH, DETH, ICRC and ours: for pacing
constexpr std::uint32_t kTailBytes = 1024;  // payloads from here on are sent from where they lie, if the port can
using roce::kPacingBatch;
using roce::kPacingSlack;
constexpr std::uint64_t kRequestNumberMask = (std::uint64_t{1} << 44U) - 1;
// Of the call that a slot has after the one with `number`.
[[nodiscard]] constexpr std::uint64_t number_of_next(std::uint64_t number) noexcept {
    return (number + kSlotsPerSession) & kRequestNumberMask;
}
constexpr std::uint64_t kFirstRequestMask = kRequestNumberMask & ~std::uint64_t{kSlotsPerSession - 1};

using roce::kRtoMin;
constexpr Duration kOwnStall = microseconds(500);  // a gap between two looks at the time that was not the peer's
constexpr Duration kRtoMax = milliseconds(200);
constexpr Duration kControlRetry = milliseconds(10);
constexpr Duration kPingInterval = milliseconds(250);
constexpr Duration kPeerTimeout = seconds(2);    // silence after which a peer counts as dead
constexpr Duration kCookieLife = seconds(2);     // a client that connects gives it back within a round trip
constexpr std::uint32_t kFarewellTries = 16384;  // how often the port is asked to take what peers are told at the end
constexpr std::size_t kResendsPerScan = 1024;    // lost requests that are sent again in a scan
constexpr std::size_t kSessionsPerScan = 1024;
constexpr std::uint32_t kControlsPerScan = 64;
constexpr std::size_t kMessageScan = 8;           // sessions whose old messages are looked for in a scan
constexpr std::size_t kMessageScanPressed = 128;  // the same when memory is wanted
constexpr Duration kScanInterval = microseconds(500);

static_assert((kSlotsPerSession & (kSlotsPerSession - 1)) == 0, "a request's slot is its number's low bits");

}  // namespace cairn::erpc
