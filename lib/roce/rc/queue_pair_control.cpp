#include "lib/roce/rc/queue_pair.hpp"

namespace cairn::roce::rc {

// An idle connection costs its queues and less than half of this.
static_assert(sizeof(QueuePair) <= 4096);

QueuePair::QueuePair(Qpn qpn, Pd pd, const QpCapacity& capacity, const QpContext& context, const XrcTarget& target)
    : qpn_(qpn),
      pd_(pd),
      service_(capacity.service),
      capacity_(capacity),
      context_(context),
      is_target_(bool(target)),
      takes_receives_(context.shared_receives == nullptr && capacity.service != wire::Service::Xrc),
      sends_(capacity.send_slots, capacity.max_sges, capacity.inline_bytes),
      own_receives_(takes_receives_ ? capacity.receive_slots : 1, capacity.max_sges),
      requester_(qpn, sends_,
                 {context.memory, context.send_completions, context.counters, context.stalls,
                  context.equal_writes && capacity.service != wire::Service::Uc},
                 capacity.window_packets, capacity.service),
      responder_(qpn,
                 {context.memory, context.counters,
                  context.shared_receives == nullptr ? &own_receives_ : context.shared_receives,
                  &context.receive_completions, context.flush, context.held, target},
                 capacity.service) {
    const bool xrc = service_ == wire::Service::Xrc;
    CAIRN_ASSERT(xrc || service_ == wire::Service::Rc || service_ == wire::Service::Uc);
    CAIRN_ASSERT(xrc || !is_target_);
    const bool held = is_target_ || context_.memory.hold_pd(pd_);
    CAIRN_ASSERT(held);
    enter_reset();
}

QueuePair::~QueuePair() {
    responder_.drop_held();
    free_windows();
    if (!is_target_) {
        context_.memory.release_pd(pd_);
    }
}

ModifyVerdict QueuePair::modify(QpState to, AttributeSet which, const QpAttributes& values) noexcept {
    const ModifyVerdict verdict = judge_modify(state_, to, which, values, kind());
    if (verdict != ModifyVerdict::Ok) {
        return verdict;
    }
    assign(attributes_, which, values);
    if (to == QpState::Reset) {
        enter_reset();
        return verdict;
    }
    if (to == QpState::Err) {
        enter_error();
        responder_.drop_answers();
        return verdict;
    }
    if (to == QpState::Rtr) {
        established_ = false;
        responder_.start(attributes_, pd_);
    } else if (state_ == QpState::Rtr) {
        requester_.start(attributes_, pd_);
    }
    drain_reported_ = drain_reported_ && to == QpState::Sqd;
    enter(to);
    notice_drained();
    return verdict;
}

void QueuePair::enter(QpState state) noexcept {
    const bool both = state == QpState::Rts || state == QpState::Sqd;
    const bool failed = state == QpState::Sqe;
    const bool is_initiator = service_ == wire::Service::Xrc && !is_target_;
    state_ = state;
    may_.send = both && !is_target_;
    may_.receive = (both || failed || state == QpState::Rtr) && !is_initiator;
    may_.flush = (failed || state == QpState::Err) && !is_target_;
}

void QueuePair::free_windows() noexcept {
    if (requester_.bound_windows()) {
        context_.memory.free_windows(qpn_);
    }
}

void QueuePair::enter_reset() noexcept {
    free_windows();
    enter(QpState::Reset);
    attributes_ = {};
    events_.clear();
    drain_reported_ = false;
    end_pacing();
    timers_.stop(Timer::Held);
    owes_notification_ = false;
    notification_point_ = DcqcnNotificationPoint{};
    flow_.reset();
    sends_.clear();
    own_receives_.clear();
    requester_.start(attributes_, pd_);
    responder_.start(attributes_, pd_);
    context_.send_completions.forget(qpn_);
    context_.receive_completions.forget(qpn_);
}

void QueuePair::enter_error(QpEvent why) noexcept {
    events_.raise(why);
    enter_error();
}

void QueuePair::enter_error() noexcept {
    if (state_ == QpState::Err) {
        return;
    }
    enter(QpState::Err);
    end_pacing();
    owes_notification_ = false;
    // Completions that find no room are lost: the queue is overrun, which its owner sees.
    (void)requester_.flush();
    responder_.stop();
    while (!own_receives_.empty()) {
        flush_receive(own_receives_.take().wr_id);
    }
    if (context_.shared_receives != nullptr || is_target_) {
        events_.raise(QpEvent::LastWqeReached);
    }
}

void QueuePair::flush_receive(std::uint64_t wr_id) noexcept {
    Completion completion{wr_id, CompletionStatus::Flushed, CompletionOpcode::Receive};
    completion.qpn = qpn_;
    (void)context_.receive_completions.push(completion);
}

QpAttributes QueuePair::query() const noexcept {
    QpAttributes now = attributes_;
    if (receives()) {
        now.receive_psn = responder_.expected_psn();
    }
    if (sends() || state_ == QpState::Sqe) {
        now.send_psn = requester_.next_psn();
    }
    return now;
}

void QueuePair::check_invariants() const noexcept {
    if (sends()) {
        requester_.check_invariants();
    }
    if (receives()) {
        responder_.check_invariants();
    }
    CAIRN_ASSERT(!flushes() || sends_.empty());
    CAIRN_ASSERT(state_ != QpState::Err || own_receives_.empty());
}

}  // namespace cairn::roce::rc
