#include "lib/roce/rc/requester.hpp"

namespace cairn::roce::rc {

Requester::Requester(Qpn qpn, SendQueue& queue, const RequesterContext& context, std::uint32_t window_packets,
                     wire::Service service) noexcept
    : completer_({qpn, context.memory, queue, context.counters}, context.completions),
      timers_(context.stalls),
      window_packets_(window_packets),
      ack_requests_(window_packets, queue.slots()),
      service_(service),
      reliable_(service != wire::Service::Uc),
      equal_writes_(context.equal_writes) {
    CAIRN_ASSERT(window_packets >= 2 && window_packets <= 1U << 20U);
}

void Requester::start(const QpAttributes& attributes, Pd pd) noexcept {
    SendSide& side = this->side();
    side.attributes = &attributes;
    side.queue.limit_reads(max_read_bytes(attributes.path_mtu_bytes));
    side.pd = pd;
    side.unacknowledged = attributes.send_psn;
    side.sent = attributes.send_psn;
    side.reads_out = 0;
    side.read_psns_out = 0;
    cursor_.start(side);
    plan_ = ResendPlan(side.sent);
    ack_requests_.start(side.sent, attributes.delayed_acks);
    retries_ = {attributes.retry_count, attributes.rnr_retry, false};
    bound_windows_ = false;
    timers_.start();
}

void Requester::check_invariants() const noexcept {
    const SendSide& side = this->side();
    const std::uint32_t out = side.outstanding_psns();
    CAIRN_ASSERT(side.sent.since(side.unacknowledged) >= 0);
    CAIRN_ASSERT(!cursor_.is_left_behind(side));
    CAIRN_ASSERT(side.read_psns_out <= out);
    CAIRN_ASSERT(out - side.read_psns_out <= window_packets_);
    CAIRN_ASSERT(side.reads_out <= kMaxRdAtomic);
    const Psn next = cursor_.psn(side);
    CAIRN_ASSERT(next.since(side.unacknowledged) >= 0 && next.since(side.sent) <= 0);
    CAIRN_ASSERT(reliable_ || out == 0);
    // If packets are on their way, the peer's silence is noticed, or our own is bounded.
    CAIRN_ASSERT(out == 0 || side.attributes->ack_timeout == 0 || next_deadline() != Instant::never());
    CAIRN_ASSERT(out != 0 || !timers_.is_armed());
}

}  // namespace cairn::roce::rc
