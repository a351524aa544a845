// Pings of sessions, and the end of sessions with silent peers.
#include <algorithm>

#include "rpc/erpc/session_control.hpp"

namespace cairn::erpc {

// Goes backwards: a session that ends makes room for the last one, which was checked already. Thousands of sessions are
// checked in parts, and send in turn. A burst of their pings would find no buffers, and would delay other packets.
void SessionControl::scan(Instant listening_from, Instant now) noexcept {
    if (now < next_scan_) {
        return;
    }
    if (scan_place_ == 0) {
        scan_place_ = sessions_.open_count();
    }
    const std::uint64_t silent_after = statistics_.controls_sent + kControlsPerScan;
    std::size_t left = kSessionsPerScan;
    while (scan_place_ != 0 && left-- != 0 && statistics_.controls_sent < silent_after) {
        --scan_place_;
        if (scan_place_ < sessions_.open_count()) {
            supervise(sessions_.open_at(scan_place_), listening_from, now);
        }
    }
    next_scan_ = now + (scan_place_ == 0 ? kControlRetry : kScanInterval);
}

void SessionControl::supervise(Session& session, Instant listening_from, Instant now) noexcept {
    // A peer is not silent while this end does not listen.
    const Duration unheard = now - std::max(session.last_heard, listening_from);
    switch (session.state) {
        case SessionState::Free:
            break;
        case SessionState::Connecting:
        case SessionState::Connected:
            supervise_client(session, unheard, now);
            break;
        case SessionState::Disconnecting:
            if (now - session.opened >= config_.peer_timeout) {
                end(session, SessionEvent::Disconnected, CallStatus::Disconnected, now);
            } else if (now - session.last_control >= kControlRetry) {
                writer_.send_control(session, ControlType::Disconnect, now);
            }
            break;
        case SessionState::Serving:
            // The client pings. Twice its patience lets it notice first.
            if (unheard >= config_.peer_timeout * 2) {
                end(session, SessionEvent::PeerLost, CallStatus::PeerLost, now);
            }
            break;
    }
}

void SessionControl::supervise_client(Session& session, Duration unheard, Instant now) noexcept {
    const bool connecting = session.state == SessionState::Connecting;
    if (unheard >= config_.peer_timeout) {
        // If a server has answered a small packet, but none of the path MTU, such packets may not reach it.
        const bool challenged = connecting && session.cookie != 0;
        end(session, SessionEvent::PeerLost, CallStatus::PeerLost, now,
            challenged ? RefuseReason::PathTooNarrow : RefuseReason::None);
    } else if (connecting) {
        if (now - session.last_control >= kControlRetry) {
            writer_.send_control(session, ControlType::Connect, now);
        }
    } else if (now - session.last_control >= ping_interval_) {  // whatever has come, it may be long ago
        writer_.send_control(session, ControlType::Ping, now);
    }
}

// Notifies the peers. If the port does not take a packet in time, the peer's own timeout must serve.
void SessionControl::take_leave(Instant now) noexcept {
    roce::Sender& sender = writer_.sender();
    std::uint32_t tries = kFarewellTries;
    const auto push = [&] {
        sender.flush(now);
        return tries-- != 0;
    };
    for (std::size_t place = 0; place < sessions_.open_count(); ++place) {
        Session& session = sessions_.open_at(place);
        const bool client = session.state != SessionState::Serving;
        while (tries != 0 && sender.queued() == roce::Sender::kQueuePackets && push()) {
        }
        while (!writer_.send_control(session, client ? ControlType::Disconnect : ControlType::Disconnected, now) &&
               tries != 0 && push()) {
        }
    }
    while (tries != 0 && sender.queued() != 0 && push()) {
    }
}

}  // namespace cairn::erpc
