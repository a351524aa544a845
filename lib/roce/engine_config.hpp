// What an engine is made with.
#pragma once

#include <cstdint>

#include "lib/base/time.hpp"
#include "lib/roce/qp/memory.hpp"

namespace cairn::roce {

// Dcqcn: paths that queue pairs are given are made ECN-capable, congestion is notified to peers, and what they notify
// is heeded. None: neither; marks are still counted.
enum class ConnectionControl : std::uint8_t { None, Dcqcn };

// See ContextCache: adapters in hardware keep so many contexts of queue pairs at hand.
struct ContextCacheEmulation {
    std::uint32_t contexts = 0;                      // 0: no emulation
    Duration miss{};                                 // what a context takes that is not there
    void (*wait)(Duration span) noexcept = nullptr;  // keeps the worker busy for so long: the engine has no clock
};

struct EngineConfig {
    std::uint32_t max_queue_pairs = 16384;  // connections; [1, 2^20], and at most half of the numbers of one owner
    std::uint32_t max_regions = 4096;       // [1, kMaxRegions]
    std::uint8_t owner_bits = 0;            // so many low bits of each queue pair number are `owner`: they name the
    std::uint32_t owner = 0;                // worker; [0, 8]
    MemoryTable::Seed seed{};               // hard to guess: keys and numbers follow from it
    std::uint32_t held_packets = 512;       // received early and kept in the port's buffers, of all selective queue
                                            // pairs together; [1, 2^20], fewer than the port has buffers
    ConnectionControl congestion = ConnectionControl::Dcqcn;
    double link_bits_per_s = 25e9;          // > 0; of what the first notification of a connection leaves a part
    ContextCacheEmulation context_cache{};  // for experiments alone
};

// Of a worker without connections: eRPC alone, say.
constexpr EngineConfig kDatagramsOnly{.max_queue_pairs = 1, .max_regions = 1};

}  // namespace cairn::roce
