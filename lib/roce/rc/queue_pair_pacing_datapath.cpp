// Congestion: answers marks by notifications, and holds packets back after notifications.
#include "lib/roce/rc/queue_pair.hpp"

#include <utility>

namespace cairn::roce::rc {

namespace {

// A peer answers packets that ask for it. A paced window takes long, and would look like the peer's silence.
constexpr Duration kAckInterval = microseconds(50);

// Writes a notification as other adapters do: not migrated, PSN 0 (annex A17.9.3).
void write_notification(OutPacket& out, const QpAttributes& attributes) noexcept {
    wire::Bth bth;
    bth.migration = false;
    bth.pkey = attributes.pkey;
    bth.becn = true;
    bth.dest_qpn = attributes.dest_qpn;
    out.again = false;
    out.payload.count = 0;
    out.payload_bytes = 0;
    write_headers(out, std::move(bth), wire::Service::Cnp, wire::Operation::CongestionNotification,
                  wire::CnpReserved{});
}

}  // namespace

void QueuePair::on_marked(const wire::Packet& packet, Instant now) noexcept {
    counters_.count(RcCounter::Marked);
    const wire::Role role = packet.traits().role;
    const bool answered = role == wire::Role::Request || role == wire::Role::Response;
    if (answered && link_bytes_per_s_ != 0 && is_connected() && notification_point_.on_marked(now)) {
        owes_notification_ = true;
    }
}

void QueuePair::on_notification(Instant now) noexcept {
    if (!is_connected()) {
        counters_.count(RcCounter::WrongState);
        return;
    }
    counters_.count(RcCounter::CnpReceived);
    if (link_bytes_per_s_ == 0) {
        return;
    }
    if (!flow_) {
        flow_.emplace(link_bytes_per_s_, now);
    }
    flow_->on_cnp(now);
    paced_ = true;
}

void QueuePair::end_pacing() noexcept {
    paced_ = false;
    timers_.stop(Timer::Rate);
    requester_.set_ack_interval(capacity_.window_packets);
}

bool QueuePair::poll_short_answer(OutPacket& out) noexcept {
    if (owes_notification_) {
        owes_notification_ = false;
        write_notification(out, attributes());
        counters_.count(RcCounter::CnpSent);
        return true;
    }
    return responder_.has_short_response() && poll_response(out);
}

bool QueuePair::poll_heedful(OutPacket& out, Instant now) noexcept {
    if (owes_notification_) {
        return poll_short_answer(out);
    }
    if (!flow_->is_congested(now)) {
        end_pacing();
        return poll_one(out, now);
    }
    if (waits_for_rate(now)) {
        return poll_short_answer(out);
    }
    return poll_paced(out, now);
}

// Returns true if the queue pair has to wait. After a wait it sends a batch before it waits again.
bool QueuePair::waits_for_rate(Instant now) noexcept {
    if (timers_.is_armed(Timer::Rate)) {
        if (!timers_.is_due(Timer::Rate, now)) {
            return true;
        }
        timers_.stop(Timer::Rate);
    }
    if (flow_->may_send(now)) {
        return false;
    }
    timers_.arm(Timer::Rate, flow_->paid_at());
    counters_.count(RcCounter::PacedTurns);
    return true;
}

bool QueuePair::poll_paced(OutPacket& out, Instant now) noexcept {
    requester_.set_ack_interval(flow_->packets_in(kAckInterval, attributes().path_mtu_bytes));
    const bool again = requester_.resends_oldest();
    if (!poll_one(out, now)) {
        return false;
    }
    if (again && !requester_.resends_oldest()) {
        requester_.forgive_pause(now);
    }
    flow_->on_sent(out.bytes() + kLinkOverheadBytes, now);
    return true;
}

}  // namespace cairn::roce::rc
