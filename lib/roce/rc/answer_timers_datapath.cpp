#include "lib/roce/rc/answer_timers.hpp"

#include "lib/roce/rc/timers.hpp"

namespace cairn::roce::rc {

void AnswerTimers::arm(std::uint8_t ack_timeout, Duration delay, Instant now) noexcept {
    disarm();
    delay_ = delay;
    if (ack_timeout != 0) {
        timers_.arm(Timer::Silence, now + rc::ack_timeout(ack_timeout) + delay);
    }
    arm_early(now);
}

// Arms the early timer only if it comes before the configured time.
void AnswerTimers::arm_early(Instant now) noexcept {
    armed_at_ = now;
    deferred_ = false;
    timers_.stop(Timer::EarlySilence);
    if (!round_trip_.known()) {
        return;
    }
    const Instant due = now + round_trip_.timeout(silences_) + delay_;
    if (due < timers_.due(Timer::Silence)) {
        timers_.arm(Timer::EarlySilence, due);
    }
}

void AnswerTimers::forgive_pause(Instant now) noexcept {
    if (timers_.is_armed(Timer::Silence)) {
        timers_.arm(Timer::Silence, timers_.due(Timer::Silence) + (now - armed_at_));
    }
    arm_early(now);
}

void AnswerTimers::on_progress(Psn unacknowledged, Instant now) noexcept {
    timers_.stop(Timer::NotReady);
    silences_ = 0;
    measure(unacknowledged, now);
}

void AnswerTimers::measure(Psn unacknowledged, Instant now) noexcept {
    if (!timed_ || timed_->psn.since(unacknowledged) >= 0) {
        return;
    }
    sample_ignored_ = !sample_ignored_ && paused_since(timed_->sent_at);
    if (!sample_ignored_) {
        round_trip_.sample(now - timed_->sent_at);
    }
    timed_.reset();
}

void AnswerTimers::hold_back(wire::RnrTimer timer, Instant now) noexcept {
    disarm();
    timers_.arm(Timer::NotReady, now + rnr_delay(timer));
}

bool AnswerTimers::take_end_of_hold(Instant now) noexcept {
    if (!timers_.is_due(Timer::NotReady, now)) {
        return false;
    }
    timers_.stop(Timer::NotReady);
    return true;
}

// Puts the same timer off once only, since a worker that sleeps until something is due pauses each time.
bool AnswerTimers::defers() noexcept {
    if (deferred_ || !paused_since(armed_at_)) {
        return false;
    }
    deferred_ = true;
    return true;
}

AnswerTimers::Silence AnswerTimers::judge_silence(std::uint8_t ack_timeout, bool nothing_sent, Instant now) noexcept {
    const bool is_configured = timers_.is_due(Timer::Silence, now);
    if (!is_configured && !timers_.is_due(Timer::EarlySilence, now)) {
        return Silence::None;
    }
    if (nothing_sent) {
        is_configured ? arm(ack_timeout, delay_, now) : arm_early(now);
        return Silence::None;
    }
    if (defers()) {
        timers_.arm(is_configured ? Timer::Silence : Timer::EarlySilence, now + kRtoMin);
        return Silence::None;
    }
    if (is_configured) {
        return Silence::Configured;
    }
    silences_ += silences_ < RoundTrip::kMostDoublings ? 1 : 0;
    arm_early(now);
    return Silence::Early;
}

}  // namespace cairn::roce::rc
