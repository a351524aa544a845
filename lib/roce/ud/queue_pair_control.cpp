// States, groups and ends of a datagram queue pair.
#include <algorithm>
#include <bit>

#include "lib/roce/ud/queue_pair.hpp"

namespace cairn::roce {

UdQueuePair::UdQueuePair(Qpn qpn, Pd pd, const QpCapacity& capacity, const UdContext& context)
    : Turn(Kind::Datagrams),
      core_(qpn, pd, wire::Service::Ud, capacity,
            {context.memory, context.send_completions, context.receive_completions, context.shared_receives}),
      datagrams_(context.datagrams),
      sender_(context.sender),
      sends_(capacity.send_slots, capacity.max_sges, capacity.inline_bytes),
      destinations_(std::bit_ceil(capacity.send_slots)) {}

Result<std::unique_ptr<UdQueuePair>> UdQueuePair::create(Qpn qpn, Pd pd, const QpCapacity& capacity,
                                                         std::uint32_t path_mtu_bytes, const UdContext& context) {
    std::unique_ptr<UdQueuePair> made(new UdQueuePair(qpn, pd, capacity, context));
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
        datagrams_.destroy_qp(qp_);
    }
}

std::optional<ModifyRefusal> UdQueuePair::modify(QpState to, AttributeSet which, const QpAttributes& values) noexcept {
    if (const std::optional<ModifyRefusal> refusal = core_.accept(to, which, values)) {
        return refusal;
    }
    if (to == QpState::Reset) {
        enter_reset();
        return std::nullopt;
    }
    if (to == QpState::Err) {
        enter_error();
        return std::nullopt;
    }
    qp_->set_keys(attributes().pkey, attributes().qkey);
    if (which.has(Attribute::SendPsn)) {
        qp_->set_next_psn(attributes().send_psn);
    }
    core_.enter(to);
    if (core_.awaits_drain()) {
        core_.report_drained();  // no datagram waits for an answer
    }
    return std::nullopt;
}

Status UdQueuePair::attach(const net::IpAddress& group) {
    const Status attached = datagrams_.attach(*qp_, group);
    if (attached.ok()) {
        groups_.push_back(group);
    }
    return attached;
}

bool UdQueuePair::detach(const net::IpAddress& group) noexcept {
    const net::IpAddress left = group;  // `group` may lie in groups_
    std::erase(groups_, left);
    return datagrams_.detach(*qp_, left);
}

void UdQueuePair::enter_reset() noexcept {
    while (!sends_.empty()) {
        destination_of_head().path->unpin();
        sends_.pop();
    }
    sends_.clear();
    core_.reset();
}

void UdQueuePair::enter_error() noexcept {
    if (state() == QpState::Err) {
        return;
    }
    core_.enter(QpState::Err);
    flush_sends();
    core_.flush_receives();
}

}  // namespace cairn::roce
