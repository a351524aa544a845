// Every limit of the reliable connection in one place; what a peer can make us hold is bounded by these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/time.hpp"

namespace cairn::roce::rc {

constexpr std::uint32_t kMaxSges = 8;                     // scatter/gather elements of one work request
constexpr std::uint32_t kMaxMessageBytes = 1U << 30U;     // 2^22 packets at the smallest path MTU: half a PSN window
constexpr std::uint32_t kMaxRdAtomic = 16;                // READs and atomics outstanding, either direction
constexpr std::uint32_t kMaxOutstandingPsns = 0x7fffffU;  // less than half the circle (IBTA vol. 1, 9.7.1)
constexpr std::uint32_t kMaxQueueSlots = 1U << 16U;       // work requests in one queue
constexpr std::uint32_t kMaxCompletionSlots = 1U << 20U;  // completions in one queue
constexpr std::uint32_t kMaxRegions = 1U << 16U;          // memory regions of one table: leaves rkeys 8 secret bits
constexpr std::uint32_t kMaxXrcQueues = 1U << 16U;        // XRC receive queues of one engine
constexpr std::uint32_t kMaxInlineBytes = 1024;           // of one work request
constexpr std::uint32_t kGrhBytes = 40;          // in front of each datagram in a receive request's memory (11.4.1.2)
constexpr std::uint32_t kAckEveryMessages = 32;  // unasked, the responder acknowledges this often
constexpr std::size_t kMaxHeaderBytes = 48;      // BTH and the longest extension headers (XRC atomic: 44)
constexpr std::uint32_t kAtomicBytes = 8;        // what an atomic works on
constexpr Duration kRtoMin = milliseconds(4);    // virtual CPUs are taken away for up to as long
constexpr Duration kOwnPause = milliseconds(1);  // between two turns of a worker: it was away, by force or asleep
constexpr std::size_t kHeldMapBytes = 32;        // of a selective NAK
constexpr std::uint32_t kHeldPackets = kHeldMapBytes * 8;  // how far behind a gap packets are held
// A READ's answer may be sent from memory that its owner is writing to. What is written between the port's ICRC and the
// copy that leaves spoils the packet, as if it were lost; once the peer asks again, so many packets of answers are
// copied first, which nothing spoils: such READs come to their end, and a loss is rare.
constexpr std::uint32_t kCopiedAnswers = 4096;
constexpr Duration kHeldFor = seconds(4);     // while what is missing does not come: its sender gave up
constexpr std::uint8_t kRnrRetryForEver = 7;  // (IBTA vol. 1, 9.7.5.2.8)

}  // namespace cairn::roce::rc
