// The configuration of an endpoint.
#pragma once

#include <cstdint>

#include "lib/base/time.hpp"
#include "rpc/common/call.hpp"
#include "rpc/common/request.hpp"
#include "rpc/common/turn_watch.hpp"
#include "rpc/copyrpc/batch_hold.hpp"
#include "rpc/copyrpc/flow.hpp"

namespace cairn::rpc {
class BackgroundPool;
}

namespace cairn::copyrpc {

using rpc::Call;
using rpc::CallId;
using rpc::CallStatus;
using rpc::kNone;
using rpc::Posted;
using rpc::PostVerdict;
using rpc::RequestHandle;

constexpr Duration kLeastPeerTimeout = milliseconds(20);
// As long as the pool has room, beside the rings of all sessions, for four of them: the request of a call and its
// answer, and those of a peer's call. So neither waits for the other without end.
constexpr std::uint32_t kLongestOfPool = 0xffffffffU;

struct EndpointConfig {
    std::uint32_t ring_bytes = 64U << 10U;  // of each session, one for either direction; a power of two, 4 KiB to 1 MiB
    std::uint32_t peer_ring_bytes_max = 0;  // of larger rings of peers so much is used; at least ring_bytes
    Flow flow = Flow::Credit;               // of both ends; peers with another one are refused
    // Batches that a peer may have under way, 4 to 4096. What waits meanwhile is the next one: with more of them
    // batches are shorter, and stay so. Over sockets, where each costs a system call, 8 bring five times as many calls
    // as 64.
    std::uint16_t receives = 8;
    std::uint16_t sessions_max = 64;  // 1 to 4096
    std::uint16_t own_sessions = 0;   // of them, so many are kept for connect(): peers that come have the others
    // So many of the others the peers of one host may have; 0: three times as many as are free.
    std::uint16_t host_sessions_max = 0;
    std::uint32_t calls_max = 4096;     // calls that wait or are under way, of all sessions
    std::uint32_t answer_bytes = 1024;  // room for the answer of a call that has no response buffer
    // Requests and answers that are too long for the rings are READ and WRITTEN by themselves, up to so many bytes; 0:
    // none. At most what kLongestOfPool says. Either direction takes a quarter of the pool at most, or one message.
    std::uint32_t message_bytes_max = kLongestOfPool;
    HoldConfig hold{};                   // of batches
    Duration peer_timeout = seconds(2);  // a peer that is silent for so long is lost; kLeastPeerTimeout or more
    // The threads of background handlers. The pool outlives the endpoint, and serves no other one meanwhile.
    rpc::BackgroundPool* background = nullptr;
    std::uint32_t path_mtu_bytes = 1024;  // of connections that this endpoint makes
    rpc::TurnWatch* watch = nullptr;      // of its turns; it outlives the endpoint
};

// How Endpoint::try_post() ends. RingFull: the peer has not read enough of what was sent. InsufficientCredit: it has
// not answered enough to promise room for another answer. Full: the endpoint has no place for another call.
enum class Attempt : std::uint8_t { Posted, NoSuchSession, NotOpen, Full, TooLong, RingFull, InsufficientCredit };
struct Tried {
    Attempt attempt = Attempt::Posted;
    CallId id = 0;
};
// Called on the endpoint's thread when a session that had no room for the last call that was tried has room for it. It
// may try and post.
using RoomCallback = void (*)(void* context, SessionId session);

}  // namespace cairn::copyrpc
