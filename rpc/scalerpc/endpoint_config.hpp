// The configuration of an endpoint.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/base/fetch.hpp"
#include "lib/base/time.hpp"
#include "rpc/common/call.hpp"
#include "rpc/common/request.hpp"
#include "rpc/common/turn_watch.hpp"
#include "rpc/scalerpc/block.hpp"
#include "rpc/scalerpc/groups.hpp"
#include "rpc/scalerpc/slice_clock.hpp"

namespace cairn::rpc {
class BackgroundPool;
}

namespace cairn::scalerpc {

using rpc::Call;
using rpc::CallId;
using rpc::CallStatus;
using rpc::kNone;
using rpc::Posted;
using rpc::PostVerdict;
using rpc::RequestHandle;

constexpr Duration kLeastPeerTimeout = milliseconds(20);

// What the server does for its clients. Without the first four it is RawWrite, the baseline of the paper: each client
// has blocks of its own in the pool and writes to them whenever it likes.
struct Features {
    bool grouping = true;   // clients take turns, by groups
    bool sharing = true;    // groups share one pool; else each client has blocks of its own
    bool warmup = true;     // requests are READ from the clients before their slice; else clients wait for it to begin
    bool priority = true;   // clients of like priority come together
    bool packing = true;    // neighbouring small messages are one WRITE or READ
    bool colouring = true;  // blocks of different sessions lie in different sets of the caches
};
constexpr Features kRawWrite{false, false, false, false, true, true};
constexpr std::uint32_t kLineBytes = kCacheLineBytes;

struct EndpointConfig {
    BlockShape shape{};  // both ends have the same
    Features features{};
    GroupConfig groups{};
    Duration notice_timeout = milliseconds(500);  // a client that has not left its slice by then loses its key
    std::uint16_t sessions_max = 64;              // 1 to 4096
    std::uint16_t own_sessions = 0;  // of them, so many are kept for connect(): peers that come have the others
    // So many of the others the peers of one host may have; 0: three times as many as are free.
    std::uint16_t host_sessions_max = 0;
    std::uint32_t calls_max = 4096;  // calls that wait or are under way, of all sessions
    // Answers beyond kShortAnswer on their way at a time; the next one waits. 0: see long_answers_of().
    std::uint32_t long_answers = 0;
    Duration peer_timeout = seconds(2);  // a peer that is silent for so long is lost; kLeastPeerTimeout or more
    // The threads of background handlers. The pool outlives the endpoint, and serves no other one meanwhile.
    rpc::BackgroundPool* background = nullptr;
    std::uint32_t path_mtu_bytes = 1024;  // of connections that this endpoint makes
    // Of a server: its slices and the slices of other servers with such a clock are at the same times, and of the same
    // clients (ScaleRPC 4.2). It outlives the endpoint. There are groups then, as many as cohorts.
    SliceClock* slice_clock = nullptr;
    std::uint8_t cohort = 0;      // of a client: its group at such servers, modulo their cohorts
    bool watches_stalls = false;  // of a client of several servers: Statistics::stalled_ns is counted
    // Measures handlers of types that have a legacy handler. Without it only handlers that answer later are noticed.
    Instant (*clock)() = nullptr;
    rpc::TurnWatch* watch = nullptr;  // of its turns; it outlives the endpoint
};

// Answers up to so many bytes of a block have a room of their own.
constexpr std::uint32_t kShortAnswer = 256;
constexpr std::uint32_t kWriteMost = 1024;  // bytes that one WRITE of several small messages takes

// Returns for how many long answers there is memory: as many as the clients of two slices wait for, or all clients of a
// server without groups. Handlers that answer slices later may have more of them.
// mutants: scalerpc-long-answers-of
[[nodiscard]] constexpr std::uint32_t long_answers_of(const EndpointConfig& config) noexcept {
    if (config.long_answers != 0 || config.shape.bytes <= kShortAnswer) {
        return config.long_answers;
    }
    const std::uint32_t all = config.sessions_max;
    return (config.features.grouping ? std::min(all, 2 * config.groups.most()) : all) * config.shape.blocks;
}

}  // namespace cairn::scalerpc
