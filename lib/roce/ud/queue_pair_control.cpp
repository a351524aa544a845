// States, groups and ends of a datagram queue pair.
#include <algorithm>
#include <bit>

#include "lib/base/assert.hpp"
#include "lib/roce/ud/queue_pair.hpp"

namespace cairn::roce {

UdQueuePair::UdQueuePair(Pd pd, const QpCapacity& capacity, const UdContext& context)
    : Turn(Kind::Datagrams),
      pd_(pd),
      context_(context),
      sends_(capacity.send_slots, capacity.max_sges, capacity.inline_bytes),
      destinations_(std::bit_ceil(capacity.send_slots)),
      own_receives_(context.shared_receives == nullptr ? capacity.receive_slots : 1, capacity.max_sges) {
    const bool held = context_.memory.hold_pd(pd_);
    CAIRN_ASSERT(held);
}

Result<std::unique_ptr<UdQueuePair>> UdQueuePair::create(Qpn qpn, Pd pd, const QpCapacity& capacity,
                                                         std::uint32_t path_mtu_bytes, const UdContext& context) {
    std::unique_ptr<UdQueuePair> made(new UdQueuePair(pd, capacity, context));
    UdConfig config;
    config.qpn = qpn;
    config.path_mtu_bytes = static_cast<std::uint16_t>(path_mtu_bytes);
    const Result<UdEntry*> opened = context.datagrams.create_qp(config, *made);
    if (!opened.ok()) {
        return opened.error();
    }
    made->qp_ = opened.value();
    return made;
}

UdQueuePair::~UdQueuePair() {
    if (qp_ != nullptr) {
        enter_reset();
        while (!groups_.empty()) {
            (void)detach(groups_.back());
        }
        context_.datagrams.destroy_qp(qp_);
    }
    context_.memory.release_pd(pd_);
}

ModifyVerdict UdQueuePair::modify(QpState to, AttributeSet which, const QpAttributes& values) noexcept {
    const ModifyVerdict verdict = judge_modify(state_, to, which, values, wire::Service::Ud);
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
        return verdict;
    }
    qp_->set_keys(attributes_.pkey, attributes_.qkey);
    if (which.has(Attribute::SendPsn)) {
        qp_->set_next_psn(attributes_.send_psn);
    }
    if (to == QpState::Sqd && state_ != QpState::Sqd) {
        events_.raise(QpEvent::SendQueueDrained);  // nothing waits for an answer
    }
    state_ = to;
    return verdict;
}

Status UdQueuePair::attach(const net::IpAddress& group) {
    const Status attached = context_.datagrams.attach(*qp_, group);
    if (attached.ok()) {
        groups_.push_back(group);
    }
    return attached;
}

bool UdQueuePair::detach(const net::IpAddress& group) noexcept {
    const net::IpAddress left = group;  // perhaps one of ours
    std::erase(groups_, left);
    return context_.datagrams.detach(*qp_, left);
}

void UdQueuePair::enter_reset() noexcept {
    state_ = QpState::Reset;
    attributes_ = {};
    events_.clear();
    while (!sends_.empty()) {
        destination_of_head().path->unpin();
        sends_.pop();
    }
    own_receives_.clear();
    context_.send_completions.forget(qpn());
    context_.receive_completions.forget(qpn());
}

void UdQueuePair::enter_error() noexcept {
    if (state_ == QpState::Err) {
        return;
    }
    state_ = QpState::Err;
    flush_sends();
    while (!own_receives_.empty()) {
        complete_receive(own_receives_.take().wr_id, CompletionStatus::Flushed);
    }
    if (context_.shared_receives != nullptr) {
        events_.raise(QpEvent::LastWqeReached);
    }
}

}  // namespace cairn::roce
