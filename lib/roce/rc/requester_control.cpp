#include "lib/roce/rc/requester.hpp"

#include <algorithm>

namespace cairn::roce::rc {

Requester::Requester(Qpn qpn, SendQueue& queue, const RequesterContext& context, std::uint32_t window_packets,
                     wire::Service service) noexcept
    : qpn_(qpn),
      memory_(context.memory),
      queue_(queue),
      completions_(context.completions),
      counters_(context.counters),
      stalls_(context.stalls),
      window_packets_(window_packets),
      service_(service),
      reliable_(service != wire::Service::Uc),
      equal_writes_(context.equal_writes),
      ack_interval_(window_packets / 2) {
    CAIRN_ASSERT(window_packets >= 2 && window_packets <= 1U << 20U);
}

void Requester::start(const QpAttributes& attributes, Pd pd) noexcept {
    attributes_ = &attributes;
    pd_ = pd;
    unacknowledged_ = attributes.send_psn;
    sent_ = attributes.send_psn;
    cursor_ = queue_.head();
    cursor_packet_ = 0;
    front_ = cursor_;
    front_packet_ = 0;
    plan_ = ResendPlan(sent_);
    reads_out_ = 0;
    read_psns_out_ = 0;
    since_ack_request_ = 0;
    set_ack_interval(window_packets_);
    retries_left_ = attributes.retry_count;
    rnr_retries_left_ = attributes.rnr_retry;
    recovered_ = false;
    bound_windows_ = false;
    disarm();
    round_trip_ = {};
    timed_.reset();
    silences_ = 0;
    timers_.stop(Timer::NotReady);
}

Instant Requester::next_deadline() const noexcept {
    return timers_.next();
}

void Requester::check_invariants() const noexcept {
    const std::int32_t out = sent_.since(unacknowledged_);
    CAIRN_ASSERT(out >= 0);
    CAIRN_ASSERT(cursor_ - queue_.head() <= queue_.tail() - queue_.head());
    CAIRN_ASSERT(read_psns_out_ <= static_cast<std::uint32_t>(out));
    CAIRN_ASSERT(static_cast<std::uint32_t>(out) - read_psns_out_ <= window_packets_);
    CAIRN_ASSERT(reads_out_ <= kMaxRdAtomic);
    CAIRN_ASSERT(cursor_psn().since(unacknowledged_) >= 0 && cursor_psn().since(sent_) <= 0);
    CAIRN_ASSERT(reliable_ || out == 0);
    // Something is on its way: either side of it is watched.
    CAIRN_ASSERT(out == 0 || attributes_->ack_timeout == 0 || next_deadline() != Instant::never());
    CAIRN_ASSERT(out != 0 || (!timers_.is_armed(Timer::Silence) && !timers_.is_armed(Timer::EarlySilence)));
}

}  // namespace cairn::roce::rc
