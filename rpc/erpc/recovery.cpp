// What time does: resending what was lost, deadlines, pings, and giving up on peers that are silent.
#include <algorithm>

#include "rpc/erpc/background.hpp"
#include "rpc/erpc/endpoint.hpp"

namespace cairn::erpc {

bool Endpoint::on_turn(Instant now) noexcept {
    on_timeout(now);
    return false;
}

void Endpoint::on_timeout(Instant now) noexcept {
    if (wheel_ != nullptr) {
        stalls_.on_turn(now);
        run_wheel(now);
    }
    if (config_.background != nullptr && config_.background->any_finished()) {
        answer_finished_jobs(now);
    }
    if (now < next_scan_) {
        return;
    }
    // After a stall of our own the answers lie in the ring, unread: nothing is lost by waiting once more.
    const Duration away = now - last_scan_;
    // Once for each scan, so that a worker whose every turn is long notices losses, too.
    if (away >= kScanInterval + kOwnStall && losses_from_ <= last_scan_) {
        losses_from_ = now + kRtoMin;
    }
    if (away >= config_.peer_timeout / 2) {
        listening_from_ = now;
    }
    last_scan_ = now;
    next_scan_ = now + kScanInterval;
    serve_stall_queue(now);
    if (now >= losses_from_) {
        scan_losses(now);
    }
    end_overdue_calls(now);
    scan_messages(now);
    if (now >= next_session_scan_) {
        next_session_scan_ = now + (scan_sessions(now) ? kControlRetry : kScanInterval);
    }
}

Instant Endpoint::next_deadline() const noexcept {
    if (wheel_ != nullptr && wheel_->size() != 0) {
        return std::min(next_scan_, wheel_->next_due());
    }
    const bool polls = config_.background != nullptr && config_.background->wants_polling();
    if (polls || !stall_queue_.empty()) {
        return next_scan_;
    }
    Instant due = deadlines_.next_due();
    if (sent_slots_.oldest() != nullptr) {
        due = std::min(due, sent_slots_.oldest()->last_sent + kRtoMin);  // earlier, nothing counts as lost
    } else if (!open_sessions_.empty()) {
        due = std::min(due, next_session_scan_);
    }
    return due == Instant::never() ? due : std::max(due, next_scan_);
}

// The list is in order of last sending: behind the first slot younger than the least timeout nothing is due.
void Endpoint::scan_losses(Instant now) noexcept {
    const ClientSlot* const last = sent_slots_.newest();
    for (ClientSlot* slot = sent_slots_.oldest(); slot != nullptr;) {
        ClientSlot* const next = slot->newer;
        const Duration waited = now - slot->last_sent;
        if (waited < kRtoMin) {
            break;
        }
        Session& session = sessions_[slot->session];
        const bool was_last = slot == last;
        if (waited >= session.rto(slot->sends) && slot->transfer != nullptr) {
            on_transfer_timeout(session, *slot, now);
        } else if (waited >= session.rto(slot->sends) && !session.has_yielded(*slot)) {
            on_request_timeout(session, *slot, now);
        }
        if (was_last) {
            break;  // those behind it were resent just now
        }
        slot = next;
    }
}

void Endpoint::end_overdue_calls(Instant now) noexcept {
    deadlines_.advance(now, [this, now](std::uint32_t index) {
        PendingCall& pending = calls_[index];
        if (pending.call.deadline <= now) {
            end_call(index, CallStatus::DeadlinePassed, now);
        } else {
            pending.deadline = deadlines_.insert(index, pending.call.deadline);
        }
    });
}

// Some sessions each time, so that all are looked at within seconds, and soon when memory is wanted.
void Endpoint::scan_messages(Instant now) noexcept {
    std::size_t left = messages_.on_scan(now) ? kMessageScanPressed : kMessageScan;
    for (left = std::min(left, open_sessions_.size()); left != 0; --left) {
        messages_place_ = messages_place_ + 1 < open_sessions_.size() ? messages_place_ + 1 : 0;
        const Session& session = sessions_[open_sessions_[messages_place_]];
        if (session.server_slots != nullptr) {
            messages_.give_up_old(*session.server_slots, now);
        }
    }
}

// Backwards: a session that ends makes room for the last one, which was looked at already. Thousands of sessions are
// looked at in parts, and speak in turn: a burst of their pings would find no buffers and drown what matters.
bool Endpoint::scan_sessions(Instant now) noexcept {
    if (scan_place_ == 0) {
        scan_place_ = open_sessions_.size();
    }
    const std::uint64_t silent_after = statistics_.controls_sent + kControlsPerScan;
    std::size_t left = kSessionsPerScan;
    while (scan_place_ != 0 && left-- != 0 && statistics_.controls_sent < silent_after) {
        --scan_place_;
        if (scan_place_ < open_sessions_.size()) {
            supervise(sessions_[open_sessions_[scan_place_]], now);
        }
    }
    return scan_place_ == 0;
}

void Endpoint::supervise(Session& session, Instant now) noexcept {
    // To whom nobody listened was not silent.
    const Duration unheard = now - std::max(session.last_heard, listening_from_);
    switch (session.state) {
        case SessionState::Free:
            break;
        case SessionState::Connecting:
        case SessionState::Connected:
            if (unheard >= config_.peer_timeout) {
                // A server that answered a small packet, and not one of the path MTU, may not get those.
                const bool challenged = session.state == SessionState::Connecting && session.cookie != 0;
                end_session(session, SessionEvent::PeerLost, CallStatus::PeerLost, now,
                            challenged ? RefuseReason::PathTooNarrow : RefuseReason::None);
            } else if (session.state == SessionState::Connecting) {
                if (now - session.last_control >= kControlRetry) {
                    send_control(session, ControlType::Connect, now);
                }
            } else if (now - session.last_control >= ping_interval_) {  // whatever came: it may be of long ago
                send_control(session, ControlType::Ping, now);
            }
            break;
        case SessionState::Disconnecting:
            if (now - session.opened >= config_.peer_timeout) {
                end_session(session, SessionEvent::Disconnected, CallStatus::Disconnected, now);
            } else if (now - session.last_control >= kControlRetry) {
                send_control(session, ControlType::Disconnect, now);
            }
            break;
        case SessionState::Serving:
            // The client pings; twice its patience leaves it to notice first.
            if (unheard >= config_.peer_timeout * 2) {
                end_session(session, SessionEvent::PeerLost, CallStatus::PeerLost, now);
            }
            break;
    }
}

}  // namespace cairn::erpc
