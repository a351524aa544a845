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
// The longest message for which the pool has room four times, in addition to the rings of all sessions. Four are the
// request of a call and its answer, and those of a peer's call. So neither call waits for the other without end.
constexpr std::uint32_t kLongestOfPool = 0xffffffffU;

struct EndpointConfig {
    std::uint32_t ring_bytes = 64U << 10U;  // of each session, one for either direction; a power of two, 4 KiB to 1 MiB
    std::uint32_t peer_ring_bytes_max = 0;  // how much of a peer's larger ring is used; at least ring_bytes
    Flow flow = Flow::Credit;               // at both ends; peers with another flow are refused
    // Batches that a peer may have under way, 4 to 4096. Messages that wait meanwhile form the next batch. With more
    // batches under way, batches are shorter, and stay short. Over sockets each batch costs a system call: 8 bring five
    // times as many calls as 64.
    std::uint16_t receives = 8;
    std::uint16_t sessions_max = 64;  // 1 to 4096
    std::uint16_t own_sessions = 0;   // sessions that are kept for connect(); peers that connect can have the others
    // How many of the others the peers of one host may have; 0: three times as many as are free.
    std::uint16_t host_sessions_max = 0;
    std::uint32_t calls_max = 4096;     // waiting or under way, of all sessions
    std::uint32_t answer_bytes = 1024;  // room for the answer of a call that has no response buffer
    // The longest request or answer, for those that are too long for the rings and are READ and WRITTEN by themselves;
    // 0: there are none. At most the size of kLongestOfPool. Either direction takes at most a quarter of the pool, or
    // one message.
    std::uint32_t message_bytes_max = kLongestOfPool;
    HoldConfig hold{};                   // of batches
    Duration peer_timeout = seconds(2);  // a peer that is silent for this long is lost; at least kLeastPeerTimeout
    // The threads of background handlers. The pool outlives the endpoint, and serves no other endpoint meanwhile.
    rpc::BackgroundPool* background = nullptr;
    std::uint32_t path_mtu_bytes = 1024;  // for connections that this endpoint makes
    rpc::TurnWatch* watch = nullptr;      // of the endpoint's turns; it outlives the endpoint
};

// The result of Endpoint::try_post(). RingFull: the peer has not read enough of its ring. InsufficientCredit: the peer
// has not answered enough for another promise of room. Full: the endpoint has no place for another call.
enum class Attempt : std::uint8_t { Posted, NoSuchSession, NotOpen, Full, TooLong, RingFull, InsufficientCredit };
struct Tried {
    Attempt attempt = Attempt::Posted;
    CallId id = 0;
};
// Called on the endpoint's thread when a session has room for the last call that found none. It may try again, and
// post.
using RoomCallback = void (*)(void* context, SessionId session);

}  // namespace cairn::copyrpc
