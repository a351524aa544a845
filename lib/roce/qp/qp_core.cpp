#include "lib/roce/qp/qp_core.hpp"

#include "lib/base/assert.hpp"

namespace cairn::roce {

namespace {

// Returns true if receive requests are posted to the queue pair itself.
bool has_own_receives(QpKind kind, const QpResources& resources) noexcept {
    return resources.shared_receives == nullptr && kind.service != wire::Service::Xrc;
}

}  // namespace

QpCore::QpCore(Qpn qpn, Pd pd, QpKind kind, const QpCapacity& capacity, const QpResources& resources)
    : qpn_(qpn),
      pd_(pd),
      kind_(kind),
      resources_(resources),
      own_receives_(has_own_receives(kind, resources) ? capacity.receive_slots : 1, capacity.max_sges) {
    const bool held = kind_.is_target || resources_.memory.hold_pd(pd_);
    CAIRN_ASSERT(held);
}

QpCore::~QpCore() {
    if (!kind_.is_target) {
        resources_.memory.release_pd(pd_);
    }
}

std::optional<ModifyRefusal> QpCore::accept(QpState to, AttributeSet which, const QpAttributes& values) noexcept {
    const std::optional<ModifyRefusal> refusal = judge_modify(state_, to, which, values, kind_);
    if (!refusal) {
        assign(attributes_, which, values);
    }
    return refusal;
}

void QpCore::enter(QpState state) noexcept {
    state_ = state;
    may_ = abilities_of(state, kind_);
    drain_reported_ = drain_reported_ && state == QpState::Sqd;
}

void QpCore::reset() noexcept {
    enter(QpState::Reset);
    attributes_ = {};
    events_.clear();
    own_receives_.clear();
    resources_.send_completions.forget(qpn_);
    resources_.receive_completions.forget(qpn_);
}

void QpCore::flush_receives() noexcept {
    while (!own_receives_.empty()) {
        complete_receive(own_receives_.take().wr_id, CompletionStatus::Flushed);
    }
    if (resources_.shared_receives != nullptr || kind_.is_target) {
        events_.raise(QpEvent::LastWqeReached);
    }
}

PostVerdict QpCore::post_receive(const ReceiveRequest& request) noexcept {
    if (kind_.service == wire::Service::Xrc) {
        return PostVerdict::WrongSide;
    }
    if (state_ == QpState::Reset || !has_own_receives(kind_, resources_)) {
        return PostVerdict::WrongState;
    }
    const PostVerdict verdict = own_receives_.post(request);
    if (state_ == QpState::Err && verdict == PostVerdict::Posted) {
        complete_receive(own_receives_.take().wr_id, CompletionStatus::Flushed);
    }
    return verdict;
}

void QpCore::complete_receive(std::uint64_t wr_id, CompletionStatus status) noexcept {
    Completion completion{wr_id, status, CompletionOpcode::Receive};
    completion.qpn = qpn_;
    (void)resources_.receive_completions.push(completion);
}

void QpCore::report_drained() noexcept {
    drain_reported_ = true;
    events_.raise(QpEvent::SendQueueDrained);
}

void QpCore::check_invariants() const noexcept {
    CAIRN_ASSERT(state_ < QpState::Count);
    CAIRN_ASSERT(state_ != QpState::Err || own_receives_.empty());
    CAIRN_ASSERT(!drain_reported_ || state_ == QpState::Sqd);
}

}  // namespace cairn::roce
