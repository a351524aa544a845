// What time does to a requester: silence of the peer, by the time configured and by round trips measured.
#include "lib/roce/rc/requester.hpp"
#include "lib/roce/rc/timers.hpp"

namespace cairn::roce::rc {

using enum RequesterResult;

void Requester::arm(Instant now) noexcept {
    const bool waits = sent_ != unacknowledged_;
    const bool bounded = attributes_->ack_timeout != 0;
    disarm();
    if (waits && bounded) {
        timers_.arm(Timer::Silence, now + ack_timeout(attributes_->ack_timeout));
    }
    if (waits) {
        arm_early(now);
    }
}

// Only where it comes before the configured time.
void Requester::arm_early(Instant now) noexcept {
    armed_at_ = now;
    deferred_ = false;
    timers_.stop(Timer::EarlySilence);
    if (round_trip_.known() && now + round_trip_.timeout(silences_) < timers_.due(Timer::Silence)) {
        timers_.arm(Timer::EarlySilence, now + round_trip_.timeout(silences_));
    }
}

void Requester::forgive_pause(Instant now) noexcept {
    if (timers_.is_armed(Timer::Silence)) {
        timers_.arm(Timer::Silence, timers_.due(Timer::Silence) + (now - armed_at_));
    }
    arm_early(now);
}

void Requester::disarm() noexcept {
    timers_.stop(Timer::Silence);
    timers_.stop(Timer::EarlySilence);
}

void Requester::measure(Instant now) noexcept {
    if (!timed_ || timed_->psn.since(unacknowledged_) >= 0) {
        return;
    }
    sample_ignored_ = !sample_ignored_ && paused_since(timed_->sent_at);
    if (!sample_ignored_) {
        round_trip_.sample(now - timed_->sent_at);
    }
    timed_.reset();
}

// After a pause of our own the answers may lie unread. A worker that sleeps until something is due pauses each time:
// the same timer is put off once only.
bool Requester::defers() noexcept {
    if (deferred_ || !paused_since(armed_at_)) {
        return false;
    }
    deferred_ = true;
    return true;
}

RequesterResult Requester::on_timeout(Instant now) noexcept {
    if (timers_.is_due(Timer::NotReady, now)) {
        timers_.stop(Timer::NotReady);
        arm(now);
    }
    if (!timers_.is_due(Timer::Silence, now)) {
        if (timers_.is_due(Timer::EarlySilence, now)) {
            on_early_timeout(now);
        }
        return Ok;
    }
    if (cursor_psn() == unacknowledged_) {
        arm(now);  // nothing could be sent since: that was no silence of the peer
        return Ok;
    }
    if (defers()) {
        timers_.arm(Timer::Silence, now + kRtoMin);
        return Ok;
    }
    counters_.count(RcCounter::Timeout);
    recovered_ = false;
    return retry(now);
}

void Requester::on_early_timeout(Instant now) noexcept {
    if (cursor_psn() == unacknowledged_) {
        arm_early(now);
        return;
    }
    if (defers()) {
        timers_.arm(Timer::EarlySilence, now + kRtoMin);
        return;
    }
    counters_.count(RcCounter::EarlyTimeout);
    recovered_ = false;
    silences_ += silences_ < RoundTrip::kMostDoublings ? 1 : 0;
    plan_.forget_pass();
    go_back();
    arm_early(now);
}

}  // namespace cairn::roce::rc
