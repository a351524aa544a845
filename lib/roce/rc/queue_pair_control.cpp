#include "lib/roce/rc/queue_pair.hpp"

namespace cairn::roce::rc {

// An idle connection costs its queues and less than half of this.
static_assert(sizeof(QueuePair) <= 4096);

QueuePair::QueuePair(Qpn qpn, Pd pd, const QpCapacity& capacity, const QpContext& context, const XrcTarget& target)
    : core_(qpn, pd, {capacity.service, bool(target)}, capacity,
            {context.memory, context.send_completions, context.receive_completions, context.shared_receives}),
      capacity_(capacity),
      counters_(context.counters),
      link_bytes_per_s_(context.link_bytes_per_s),
      sends_(capacity.send_slots, capacity.max_sges, capacity.inline_bytes),
      requester_(qpn, sends_,
                 {context.memory, context.send_completions, context.counters, context.stalls,
                  context.equal_writes && capacity.service != wire::Service::Uc},
                 capacity.window_packets, capacity.service),
      responder_(qpn,
                 {context.memory, context.counters, &core_.receives(), &context.receive_completions, context.flush,
                  context.held, target, context.writes},
                 capacity.service) {
    const bool xrc = service() == wire::Service::Xrc;
    CAIRN_ASSERT(xrc || service() == wire::Service::Rc || service() == wire::Service::Uc);
    CAIRN_ASSERT(xrc || !kind().is_target);
    if (capacity.reuses_slots) {
        sends_.reuse_slots();
    }
    enter_reset();
}

QueuePair::~QueuePair() {
    responder_.drop_held();
    free_windows();
}

std::optional<ModifyRefusal> QueuePair::modify(QpState to, AttributeSet which, const QpAttributes& values) noexcept {
    const QpState from = state();
    if (const std::optional<ModifyRefusal> refusal = core_.accept(to, which, values)) {
        return refusal;
    }
    if (to == QpState::Reset) {
        enter_reset();
        return std::nullopt;
    }
    if (to == QpState::Err) {
        enter_error();
        responder_.drop_answers();
        return std::nullopt;
    }
    first_request_.enter(to == QpState::Rtr);
    if (to == QpState::Rtr) {
        responder_.start(attributes(), core_.pd());
    } else if (from == QpState::Rtr) {
        requester_.start(attributes(), core_.pd());
    }
    core_.enter(to);
    notice_drained();
    return std::nullopt;
}

void QueuePair::free_windows() noexcept {
    if (requester_.bound_windows()) {
        core_.resources().memory.free_windows(qpn());
    }
}

void QueuePair::enter_reset() noexcept {
    free_windows();
    core_.reset();
    end_pacing();
    timers_.stop(Timer::Held);
    first_request_.reset();
    owes_notification_ = false;
    notification_point_ = DcqcnNotificationPoint{};
    flow_.reset();
    sends_.clear();
    requester_.start(attributes(), core_.pd());
    responder_.start(attributes(), core_.pd());
}

void QueuePair::enter_error(QpEvent why) noexcept {
    core_.raise(why);
    enter_error();
}

void QueuePair::enter_error() noexcept {
    if (state() == QpState::Err) {
        return;
    }
    core_.enter(QpState::Err);
    end_pacing();
    owes_notification_ = false;
    // Completions that find no room are lost. The queue is then overrun, which its owner sees.
    (void)requester_.flush();
    responder_.stop();
    core_.flush_receives();
}

QpAttributes QueuePair::query() const noexcept {
    QpAttributes now = attributes();
    if (receives()) {
        now.receive_psn = responder_.expected_psn();
    }
    if (sends() || state() == QpState::Sqe) {
        now.send_psn = requester_.next_psn();
    }
    return now;
}

void QueuePair::check_invariants() const noexcept {
    if (sends()) {
        requester_.check_invariants();
        CAIRN_ASSERT(!sends_.empty() || requester_.next_deadline() == Instant::never());
    }
    if (receives()) {
        responder_.check_invariants();
    }
    CAIRN_ASSERT(!core_.may().flush || sends_.empty());
    core_.check_invariants();
}

}  // namespace cairn::roce::rc
