// The common part of the sessions of all RPC systems over reliable connections.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/net/address.hpp"
#include "lib/roce/qp/event_sink.hpp"
#include "lib/verbs/connector.hpp"

namespace cairn::rpc {

enum class LinkState : std::uint8_t {
    Connecting,  // until both ends are ready; meanwhile calls wait
    Open,
    Ending,  // takes no calls; awaits the connection's last event
};

// An RPC system's session derives from it. Links and Probes keep it.
struct LinkedSession {
    SessionId id{};
    LinkState state = LinkState::Connecting;
    bool ours = false;     // connect() began it
    bool listed = false;   // in the list of sessions that have something to do
    bool stalled = false;  // in the list of sessions that have something to do in the next turn
    bool written = false;  // in the list of sessions to look at
    verbs::ConnectionId connection{};
    Qpn qpn{};                                    // its key in QpnTable; the queue pair may end before the session
    std::unique_ptr<roce::EventSink> write_sink;  // the queue pair's, if the system wants to see the peer's writes
    std::unique_ptr<verbs::Pd> pd;                // the session's own, if the system gives it one
    std::unique_ptr<verbs::Qp> qp;
    Instant asked{};                // when the peer's REQ came, if the peer began
    net::IpAddress asker{};         // the share holder of the REQ's address, if the peer began
    bool heard = false;             // the peer was heard since the last look
    std::uint8_t silent_looks = 0;  // successive looks without a sign of the peer, while a probe was under way
    bool probed = false;            // a probe is under way

    [[nodiscard]] bool is_open() const noexcept { return state == LinkState::Open; }
    // True if the peer has asked for the session, and has sent nothing since.
    [[nodiscard]] bool is_unproven() const noexcept { return state == LinkState::Connecting && !ours; }
};

}  // namespace cairn::rpc
