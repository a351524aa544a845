// Acts on answers and silence: goes on, sends again, or ends.
#include "lib/roce/rc/requester.hpp"

namespace cairn::roce::rc {

std::optional<RequesterStop> Requester::on_answer(const wire::Packet& packet, Instant now) noexcept {
    const Psn before = side().unacknowledged;
    const AnswerEffect effect = completer_.on_answer(packet);
    if (side().unacknowledged != before && !effect.is_end()) {
        on_progress(now);
    }
    return act(effect, packet, now);
}

std::optional<RequesterStop> Requester::act(const AnswerEffect& effect, const wire::Packet& packet,
                                            Instant now) noexcept {
    using Kind = AnswerEffect::Kind;
    switch (effect.kind) {
        case Kind::None:
            return std::nullopt;
        case Kind::DataTaken:
            return acknowledge_executed(now);
        case Kind::NakSequence:
            plan_.forget_map();
            return recover(RcCounter::NakSequenceReceived, effect.psn, now);
        case Kind::ImpliedNak:
            return recover(RcCounter::ImpliedNak, effect.psn, now);
        case Kind::Map: {
            plan_.executed(effect.psn);
            const Psn newest = plan_.take_map(effect.psn, packet.payload());
            if (newest.since(side().sent) < 0) {
                patch(newest, now);
            }
            return std::nullopt;
        }
        case Kind::NotReady:
            return hold_back(effect.timer, now);
        case Kind::Failed:
            return RequesterStop::Failed;
        case Kind::CqOverrun:
            return RequesterStop::CqOverrun;
    }
    return std::nullopt;
}

// Completes the requests that were acknowledged while the answer that came now was missing.
std::optional<RequesterStop> Requester::acknowledge_executed(Instant now) noexcept {
    const Psn before = side().unacknowledged;
    const bool pushed = completer_.acknowledge(plan_.executed_until().plus(Psn::kMask));
    if (side().unacknowledged != before) {
        on_progress(now);
    }
    return pushed ? std::nullopt : std::optional(RequesterStop::CqOverrun);
}

std::optional<RequesterStop> Requester::hold_back(wire::RnrTimer timer, Instant now) noexcept {
    if (is_at_oldest_psn()) {
        return std::nullopt;  // the peer is held back already
    }
    if (retries_.rnr_left == 0) {
        return completer_.fail(CompletionStatus::RnrRetryExceeded);
    }
    if (side().attributes->rnr_retry != kRnrRetryForEver) {
        --retries_.rnr_left;
    }
    plan_.forget_pass();
    go_back();
    timers_.hold_back(timer, now);
    return std::nullopt;
}

// Recovers a loss, which a NAK reports, or an answer that comes after a READ or atomic still waiting for its own
// (9.7.5). If going back did not help, the timeout does.
std::optional<RequesterStop> Requester::recover(RcCounter reason, Psn newest, Instant now) noexcept {
    SendSide& side = this->side();
    side.counters.count(reason);
    if (side.attributes->selective && reason == RcCounter::ImpliedNak) {
        plan_.executed(newest.next());
        patch(newest, now);
        return std::nullopt;
    }
    if (retries_.recovered || is_at_oldest_psn()) {
        return std::nullopt;
    }
    retries_.recovered = true;
    return retry(now);
}

// Sends a selective peer only the packets that it misses. Costs no retry, since the peer takes new packets. If it never
// takes the oldest one, the window ends that, and silence is counted.
void Requester::patch(Psn newest, Instant now) noexcept {
    const ResendPlan::Step step = plan_.begin_or_extend(newest, side().unacknowledged, side().sent);
    if (step == ResendPlan::Step::Nothing) {
        return;
    }
    go_back();
    if (step == ResendPlan::Step::Began) {
        arm(now);
    }
}

std::optional<RequesterStop> Requester::retry(Instant now) noexcept {
    if (retries_.left == 0) {
        return completer_.fail(CompletionStatus::RetryExceeded);
    }
    --retries_.left;
    plan_.forget_pass();
    go_back();
    arm(now);
    return std::nullopt;
}

void Requester::go_back() noexcept {
    cursor_.go_back(side());
    timers_.stop_timing();
}

void Requester::on_progress(Instant now) noexcept {
    const SendSide& side = this->side();
    retries_ = {side.attributes->retry_count, side.attributes->rnr_retry, false};
    timers_.on_progress(side.unacknowledged, now);
    plan_.on_progress(side.unacknowledged);
    if (cursor_.is_left_behind(side) || cursor_.psn(side).since(side.unacknowledged) < 0) {
        go_back();  // the packets to be sent again have arrived after all
    }
    arm(now);
}

void Requester::arm(Instant now) noexcept {
    if (side().awaits_answer()) {
        timers_.arm(side().attributes->ack_timeout, ack_requests_.delay(side().unacknowledged), now);
    } else {
        timers_.disarm();
    }
}

std::optional<RequesterStop> Requester::on_timeout(Instant now) noexcept {
    if (timers_.take_end_of_hold(now)) {
        arm(now);
    }
    switch (timers_.judge_silence(side().attributes->ack_timeout, is_at_oldest_psn(), now)) {
        case AnswerTimers::Silence::None:
            return std::nullopt;
        case AnswerTimers::Silence::Early:
            side().counters.count(RcCounter::EarlyTimeout);
            retries_.recovered = false;
            plan_.forget_pass();
            go_back();
            return std::nullopt;
        case AnswerTimers::Silence::Configured:
            side().counters.count(RcCounter::Timeout);
            retries_.recovered = false;
            return retry(now);
    }
    return std::nullopt;
}

bool Requester::flush() noexcept {
    const bool pushed = completer_.flush();
    cursor_.start(side());
    plan_ = ResendPlan(side().sent);
    timers_.disarm();
    timers_.end_hold();
    return pushed;
}

}  // namespace cairn::roce::rc
