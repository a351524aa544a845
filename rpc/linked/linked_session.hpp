// What the sessions of all RPC systems over reliable connections have in common.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/net/address.hpp"
#include "lib/roce/qp/event_sink.hpp"
#include "lib/verbs/connector.hpp"

namespace cairn::rpc {

enum class LinkState : std::uint8_t {
    Connecting,  // until both ends are ready; calls wait
    Open,
    Ending,  // no call is taken; the connection's last event is awaited
};

// An RPC system's session derives from it. Links and Probes keep it.
struct LinkedSession {
    SessionId id{};
    LinkState state = LinkState::Connecting;
    bool ours = false;     // connect() began it
    bool listed = false;   // in the list of sessions that have something to do
    bool stalled = false;  // in the list of sessions that have something to do in the next turn
    bool written = false;  // in the list of sessions that are to be looked at
    verbs::ConnectionId connection{};
    Qpn qpn{};                                    // by which it is found; the queue pair may end before the session
    std::unique_ptr<roce::EventSink> write_sink;  // of the queue pair, if the system wants to know what is written
    std::unique_ptr<verbs::Pd> pd;                // of its own, if the system gives it one
    std::unique_ptr<verbs::Qp> qp;
    Instant asked{};                // when the peer's REQ came, if the peer began
    net::IpAddress asker{};         // the share holder of the REQ's address, likewise
    bool heard = false;             // since the last look
    std::uint8_t silent_looks = 0;  // in a row, while a probe was under way
    bool probed = false;            // a probe is under way

    [[nodiscard]] bool is_open() const noexcept { return state == LinkState::Open; }
    // Its peer asked, and has said nothing since.
    // mutants: linked-session-is-unproven
    [[nodiscard]] bool is_unproven() const noexcept { return state == LinkState::Connecting && !ours; }
};

}  // namespace cairn::rpc
