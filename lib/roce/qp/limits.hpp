// All limits of queue pairs and their memory.
#pragma once

#include <cstdint>

namespace cairn::roce {

constexpr std::uint32_t kMaxSges = 32;                    // scatter/gather elements of one work request
constexpr std::uint32_t kMaxMessageBytes = 1U << 31U;     // as with adapters
constexpr std::uint32_t kMaxReadPackets = 1U << 22U;      // of an answer: half of the PSNs that may be outstanding
constexpr std::uint32_t kMaxRdAtomic = 16;                // READs and atomics outstanding in either direction
constexpr std::uint32_t kMaxQueueSlots = 1U << 16U;       // work requests in one queue
constexpr std::uint32_t kMaxCompletionSlots = 1U << 20U;  // completions in one queue
constexpr std::uint32_t kMaxRegions = 1U << 20U;          // memory regions of one table: see RegionKeys
constexpr std::uint32_t kNullBytes = 4096;                // the bytes of a null region that one packet reaches
constexpr std::uint32_t kMaxXrcQueues = 1U << 16U;        // XRC receive queues of one engine
constexpr std::uint32_t kMaxInlineBytes = 1024;           // of one work request
constexpr std::uint32_t kGrhBytes = 40;    // the header before each datagram in a receive request (11.4.1.2)
constexpr std::uint32_t kAtomicBytes = 8;  // the word that an atomic works on

// Returns the most bytes of a READ. All PSNs of its answer are outstanding at once; PSNs of other messages are sent a
// window at a time.
[[nodiscard]] constexpr std::uint32_t max_read_bytes(std::uint32_t path_mtu_bytes) noexcept {
    constexpr std::uint32_t kEnough = kMaxMessageBytes / kMaxReadPackets;
    return path_mtu_bytes < kEnough ? path_mtu_bytes * kMaxReadPackets : kMaxMessageBytes;
}

}  // namespace cairn::roce
