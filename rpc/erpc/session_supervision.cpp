// What time does to sessions: pings, and giving up on peers that are silent.
#include <algorithm>

#include "rpc/erpc/session_control.hpp"

namespace cairn::erpc {

// Backwards: a session that ends makes room for the last one, which was looked at already. Thousands of sessions are
// looked at in parts, and speak in turn: a burst of their pings would find no buffers and drown what matters.
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

// mutants: erpc-session-control-supervise
void SessionControl::supervise(Session& session, Instant listening_from, Instant now) noexcept {
    // A peer that nobody listened to was not silent.
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
            // The client pings; twice its patience leaves it to notice first.
            if (unheard >= config_.peer_timeout * 2) {
                end(session, SessionEvent::PeerLost, CallStatus::PeerLost, now);
            }
            break;
    }
}

// mutants: erpc-session-control-supervise-client
void SessionControl::supervise_client(Session& session, Duration unheard, Instant now) noexcept {
    const bool connecting = session.state == SessionState::Connecting;
    if (unheard >= config_.peer_timeout) {
        // A server that answered a small packet, and not one of the path MTU, may not get those.
        const bool challenged = connecting && session.cookie != 0;
        end(session, SessionEvent::PeerLost, CallStatus::PeerLost, now,
            challenged ? RefuseReason::PathTooNarrow : RefuseReason::None);
    } else if (connecting) {
        if (now - session.last_control >= kControlRetry) {
            writer_.send_control(session, ControlType::Connect, now);
        }
    } else if (now - session.last_control >= ping_interval_) {  // whatever came: it may be of long ago
        writer_.send_control(session, ControlType::Ping, now);
    }
}

// What the port does not take in time is left to the peers' patience.
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
