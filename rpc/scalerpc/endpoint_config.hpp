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

// A server's services for its clients. Without the first four it is RawWrite, the baseline of the paper. Each client
// then has its own blocks in the pool and writes to them at any time.
struct Features {
    bool grouping = true;   // clients take turns, by groups
    bool sharing = true;    // groups share one pool; otherwise each client has its own blocks
    bool warmup = true;     // the server READs requests from clients before their slice; otherwise clients wait for the
                            // slice
    bool priority = true;   // clients of similar priority form groups
    bool packing = true;    // neighbouring small messages are one WRITE or READ
    bool colouring = true;  // blocks of different sessions lie in different sets of the caches
};
constexpr Features kRawWrite{false, false, false, false, true, true};
constexpr std::uint32_t kLineBytes = kCacheLineBytes;

struct EndpointConfig {
    BlockShape shape{};  // the same at both ends
    Features features{};
    GroupConfig groups{};
    Duration notice_timeout = milliseconds(500);  // a client that has not left its slice within this time loses its key
    std::uint16_t sessions_max = 64;              // 1 to 4096
    std::uint16_t own_sessions = 0;  // sessions that are kept for connect(); peers that connect can have the others
    // How many of the others the peers of one host may have; 0: three times as many as are free.
    std::uint16_t host_sessions_max = 0;
    std::uint32_t calls_max = 4096;  // waiting or under way, of all sessions
    // Answers longer than kShortAnswer that may be on their way at a time; others wait. 0: see long_answers_of().
    std::uint32_t long_answers = 0;
    Duration peer_timeout = seconds(2);  // a peer that is silent for this long is lost; at least kLeastPeerTimeout
    // The threads of background handlers. The pool outlives the endpoint, and serves no other endpoint meanwhile.
    rpc::BackgroundPool* background = nullptr;
    std::uint32_t path_mtu_bytes = 1024;  // for connections that this endpoint makes
    // At a server, synchronises its slices with those of other servers with such a clock: same times, same clients
    // (ScaleRPC 4.2). It outlives the endpoint. The number of groups is then the number of cohorts.
    SliceClock* slice_clock = nullptr;
    std::uint8_t cohort = 0;      // at a client: its group at such servers, modulo their cohorts
    bool watches_stalls = false;  // at a client of several servers: counts Statistics::stalled_ns
    // Measures handlers of types with a legacy handler. Without it only handlers that answer later are noticed.
    Instant (*clock)() = nullptr;
    rpc::TurnWatch* watch = nullptr;  // of the endpoint's turns; it outlives the endpoint
};

// Answers up to this size in a block have a room of their own.
constexpr std::uint32_t kShortAnswer = 256;
constexpr std::uint32_t kWriteMost = 1024;  // bytes in one WRITE of several small messages, at most

// Returns for how many long answers there is memory. It is enough for the clients of two slices, or for all clients of
// a server without groups. If handlers answer slices later, more answers may wait for that memory.
[[nodiscard]] constexpr std::uint32_t long_answers_of(const EndpointConfig& config) noexcept {
    if (config.long_answers != 0 || config.shape.bytes <= kShortAnswer) {
        return config.long_answers;
    }
    const std::uint32_t all = config.sessions_max;
    return (config.features.grouping ? std::min(all, 2 * config.groups.most()) : all) * config.shape.blocks;
}

}  // namespace cairn::scalerpc
