// Every limit of the reliable connection in one place; what a peer can make us hold is bounded by these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/time.hpp"

namespace cairn::roce::rc {

constexpr std::uint32_t kMaxOutstandingPsns = 0x7fffffU;   // less than half the circle (IBTA vol. 1, 9.7.1)
constexpr std::uint32_t kAckEveryMessages = 32;            // unasked, the responder acknowledges this often
constexpr std::size_t kMaxHeaderBytes = 48;                // BTH and the longest extension headers (XRC atomic: 44)
constexpr std::size_t kHeldMapBytes = 32;                  // of a selective NAK
constexpr std::uint32_t kHeldPackets = kHeldMapBytes * 8;  // how far behind a gap packets are held
// A READ's answer may be sent from memory that its owner is writing to. What is written between the port's ICRC and the
// copy that leaves spoils the packet, as if it were lost; once the peer asks again, so many packets of answers are
// copied first, which nothing spoils: such READs come to their end, and a loss is rare.
constexpr std::uint32_t kCopiedAnswers = 4096;
constexpr Duration kHeldFor = seconds(4);     // while what is missing does not come: its sender gave up
constexpr std::uint8_t kRnrRetryForEver = 7;  // (IBTA vol. 1, 9.7.5.2.8)

}  // namespace cairn::roce::rc
