// All limits of connections. They bound the memory that a peer can make us hold.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/time.hpp"

namespace cairn::roce::rc {

constexpr std::uint32_t kMaxOutstandingPsns = 0x7fffffU;  // less than half the circle (IBTA vol. 1, 9.7.1)
constexpr std::uint32_t kAckEveryMessages = 32;           // one acknowledgement in this many, if none is asked for
// For peers that agreed on delayed acknowledgements. The responder acknowledges this long after the first message
// without an acknowledgement at the latest. That is far below the shortest time from which silence is noticed
// (kRtoMin). A requester asks at least once in kAskEveryMessages messages, and these measure round trips.
constexpr Duration kAckDelay = milliseconds(1);
constexpr std::uint32_t kAskEveryMessages = 2 * kAckEveryMessages;
constexpr std::size_t kMaxHeaderBytes = 48;                // BTH and the longest extension headers (XRC atomic: 44)
constexpr std::size_t kHeldMapBytes = 32;                  // of the map in a selective NAK
constexpr std::uint32_t kHeldPackets = kHeldMapBytes * 8;  // packets are held up to this far after a gap
// The answer to a READ may be sent from memory that its owner is writing to. A write between the port's ICRC and the
// copy that leaves spoils the packet: the peer sees a loss. Once a peer asks again, this many packets of answers are
// copied before they are sent. So such READs come to their end.
constexpr std::uint32_t kCopiedAnswers = 4096;
constexpr Duration kHeldFor = seconds(4);     // after this time without progress the missing packets' sender gave up
constexpr std::uint8_t kRnrRetryForEver = 7;  // (IBTA vol. 1, 9.7.5.2.8)

}  // namespace cairn::roce::rc
