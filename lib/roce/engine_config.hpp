// The configuration of an engine.
#pragma once

#include <cstdint>

#include "lib/base/time.hpp"
#include "lib/roce/qp/memory.hpp"

namespace cairn::roce {

// Dcqcn: the paths of queue pairs are made ECN-capable, peers are notified of congestion, and their notifications are
// obeyed. None: neither; marks are still counted.
enum class ConnectionControl : std::uint8_t { None, Dcqcn };

// See ContextCache: adapters in hardware keep this many contexts of queue pairs at hand.
struct ContextCacheEmulation {
    std::uint32_t contexts = 0;                      // 0: no emulation
    Duration miss{};                                 // time to fetch a context that is not there
    void (*wait)(Duration span) noexcept = nullptr;  // keeps the worker busy for `span`: the engine has no clock
};

struct EngineConfig {
    std::uint32_t max_queue_pairs = 16384;  // connections; [1, 2^20], and at most half of the numbers of one owner
    std::uint32_t max_regions = 4096;       // [1, kMaxRegions]
    std::uint8_t owner_bits = 0;            // that many low bits of each queue pair number are `owner`: they name the
    std::uint32_t owner = 0;                // worker; [0, 8]
    MemoryTable::Seed seed{};               // hard to guess: keys and numbers follow from it
    std::uint32_t held_packets = 512;       // received early and kept in the port's buffers, of all selective queue
                                            // pairs together; [1, 2^20], fewer than the port has buffers
    ConnectionControl congestion = ConnectionControl::Dcqcn;
    double link_bits_per_s = 25e9;          // > 0; the first notification of a connection leaves a part of it
    ContextCacheEmulation context_cache{};  // for experiments only
};

// The configuration of a worker without connections, for instance one that runs only eRPC.
constexpr EngineConfig kDatagramsOnly{.max_queue_pairs = 1, .max_regions = 1};

}  // namespace cairn::roce
