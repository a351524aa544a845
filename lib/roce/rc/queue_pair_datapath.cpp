#include "lib/roce/rc/queue_pair.hpp"

#include <algorithm>

namespace cairn::roce::rc {

namespace {

// Judges the operation. Work that sends nothing names no queue of the peer.
PostVerdict judge_service(wire::Service service, const SendRequest& request) noexcept {
    if (!has_work(service, request.opcode)) {
        return PostVerdict::BadOpcode;
    }
    const bool lacks_queue =
        service == wire::Service::Xrc && request.remote_srqn.value == 0 && !is_local(request.opcode);
    return lacks_queue ? PostVerdict::BadSrqn : PostVerdict::Posted;
}

PostVerdict judge_kind(Abilities may, QpKind kind, wire::Service service, const SendRequest& request) noexcept {
    if (!may.send && !may.flush) {
        return kind.is_target ? PostVerdict::WrongSide : PostVerdict::WrongState;
    }
    return service != wire::Service::Rc ? judge_service(service, request) : PostVerdict::Posted;
}

}  // namespace

PostVerdict judge_send(const QueuePair& qp, const SendRequest& request) noexcept {
    const PostVerdict verdict = judge_kind(abilities_of(qp.state(), qp.kind()), qp.kind(), qp.service(), request);
    return verdict == PostVerdict::Posted ? qp.requester().queue().judge(request) : verdict;
}

PostVerdict QueuePair::post_send(const SendRequest& request) noexcept {
    PostVerdict verdict = judge_kind(core_.may(), kind(), service(), request);
    if (verdict != PostVerdict::Posted) {
        return verdict;
    }
    verdict = sends_.post(request);
    if (core_.may().flush && verdict == PostVerdict::Posted) {
        (void)requester_.flush();
    }
    return verdict;
}

PostVerdict QueuePair::post_receive(const ReceiveRequest& request) noexcept {
    return core_.post_receive(request);
}

std::optional<RcCounter> QueuePair::judge_packet(const wire::Packet& packet) const noexcept {
    if (packet.traits().service != service()) {
        return RcCounter::WrongService;
    }
    if (packet.traits().role == wire::Role::Request ? !receives() : !sends()) {
        return RcCounter::WrongState;
    }
    return wire::pkeys_match(attributes().pkey, packet.bth().pkey) ? std::nullopt : std::optional(RcCounter::BadPkey);
}

void QueuePair::on_packet(const wire::Packet& packet, Instant now) noexcept {
    (void)on_packet(packet, {}, now);
}

bool QueuePair::on_packet(const wire::Packet& packet, const PacketOffer& offer, Instant now) noexcept {
    if (const std::optional<RcCounter> reason = judge_packet(packet)) {
        if (packet.traits().role == wire::Role::Notification) {
            on_notification(now);
            return false;
        }
        counters_.count(*reason);
        return false;
    }
    if (packet.traits().role != wire::Role::Request) {
        on_result(requester_.on_answer(packet, now));
        notice_drained();
        return false;
    }
    bool kept = false;
    on_result(responder_.on_request(packet, offer, kept, now));
    if (first_request_.is_awaited()) [[unlikely]] {
        const bool taken = responder_.expected_psn() != attributes().receive_psn;
        if (first_request_.on_packet(taken)) {
            core_.raise(QpEvent::CommunicationEstablished);
        }
    }
    if (kept || timers_.is_armed(Timer::Held)) [[unlikely]] {
        watch_held(now);
    }
    return kept;
}

// Restarts the time of held packets at each step that closes a gap before them.
void QueuePair::watch_held(Instant now) noexcept {
    if (!responder_.holds()) {
        timers_.stop(Timer::Held);
    } else if (!timers_.is_armed(Timer::Held) || held_behind_ != responder_.expected_psn()) {
        timers_.arm(Timer::Held, now + kHeldFor);
        held_behind_ = responder_.expected_psn();
    }
}

void QueuePair::on_timeout(Instant now) noexcept {
    if (timers_.is_due(Timer::Rate, now)) {
        timers_.stop(Timer::Rate);
    }
    if (timers_.is_due(Timer::Held, now)) {
        timers_.stop(Timer::Held);
        if (responder_.holds()) {
            responder_.give_held_up();
        }
    }
    responder_.on_timeout(now);
    if (sends()) {
        on_result(requester_.on_timeout(now));
    }
}

Instant QueuePair::next_deadline() const noexcept {
    const Instant own = std::min(timers_.next(), responder_.next_deadline());
    return sends() && !sends_.empty() ? std::min(own, requester_.next_deadline()) : own;
}

std::size_t QueuePair::poll_transmit(std::span<OutPacket> out, Instant now) noexcept {
    std::size_t count = 0;
    while (count < out.size() &&
           (paced_ || owes_notification_ ? poll_heedful(out[count], now) : poll_one(out[count], now))) {
        ++count;
    }
    return count;
}

bool QueuePair::poll_one(OutPacket& out, Instant now) noexcept {
    response_first_ = !response_first_;
    if (response_first_) {
        return poll_response(out) || poll_request(out, now);
    }
    return poll_request(out, now) || poll_response(out);
}

bool QueuePair::poll_request(OutPacket& out, Instant now) noexcept {
    if (!sends()) {
        return false;
    }
    std::optional<RequesterStop> stop;
    const bool made = has_unsent_requests() &&
                      requester_.poll_request(out, now, state() == QpState::Sqd || attributes().sends_wait, stop);
    on_result(stop);
    notice_drained();
    return made;
}

bool QueuePair::poll_response(OutPacket& out) noexcept {
    if (!responder_.has_response()) {
        return false;
    }
    const bool made = responder_.poll_response(out);
    if (responder_.failed() && state() != QpState::Err) {
        enter_error(QpEvent::AccessViolation);  // a READ whose region or right is gone
    }
    return made;
}

void QueuePair::on_result(std::optional<RequesterStop> stop) noexcept {
    if (!stop) [[likely]] {
        return;
    }
    switch (*stop) {
        case RequesterStop::Failed:
            if (service() == wire::Service::Uc) {
                core_.enter(QpState::Sqe);
                (void)requester_.flush();  // completions may be lost to an overrun: the queue shows it
            } else {
                enter_error();  // a completion said why
            }
            return;
        case RequesterStop::CqOverrun:
            enter_error(QpEvent::CqOverrun);
            return;
    }
}

void QueuePair::on_result(std::optional<ResponderStop> stop) noexcept {
    if (!stop) [[likely]] {
        return;
    }
    switch (*stop) {
        case ResponderStop::RequestError:
            enter_error(QpEvent::InvalidRequest);
            return;
        case ResponderStop::AccessError:
            enter_error(QpEvent::AccessViolation);
            return;
        case ResponderStop::LocalError:
            enter_error();
            return;
        case ResponderStop::FlushError:
            enter_error(QpEvent::Fatal);
            return;
        case ResponderStop::CqOverrun:
            enter_error(QpEvent::CqOverrun);
            return;
    }
}

void QueuePair::notice_drained() noexcept {
    if (core_.awaits_drain() && sends_.drained()) {
        core_.report_drained();
    }
}

}  // namespace cairn::roce::rc
