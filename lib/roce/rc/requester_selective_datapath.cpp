// Sending again to a Cairn peer that holds what came early: only what it misses.
#include "lib/roce/rc/requester.hpp"

namespace cairn::roce::rc {

using enum RequesterResult;

// A NAK with a map: all before its PSN was executed, that one is missing, the map says what is held behind it.
RequesterResult Requester::on_map(const wire::Packet& packet, Instant now) noexcept {
    const Psn psn = packet.bth().psn;
    if (packet.get<wire::Aeth>().syndrome != wire::Aeth::Syndrome(wire::NakCode::PsnSequence)) {
        counters_.count(RcCounter::UnexpectedResponse);
        return Ok;
    }
    counters_.count(RcCounter::NakSequenceReceived);
    if (!acknowledge(psn.plus(Psn::kMask), now)) {
        return CqOverrun;
    }
    plan_.executed(psn);
    const Psn newest = plan_.take_map(psn, packet.payload());
    if (newest.since(sent_) < 0) {
        patch(newest, now);
    }
    return Ok;
}

// Costs no retry: the peer takes what is new. If it never takes the oldest the window ends that, and silence is
// counted.
void Requester::patch(Psn newest, Instant now) noexcept {
    const ResendPlan::Step step = plan_.begin_or_extend(newest, unacknowledged_, sent_);
    if (step == ResendPlan::Step::Nothing) {
        return;
    }
    go_back();
    if (step == ResendPlan::Step::Began) {
        arm(now);
    }
}

// Past all that the peer has; at the end of a pass on to what was never sent.
void Requester::skip_spared() noexcept {
    if (!plan_.knows()) {
        return;
    }
    while (cursor_ != queue_.tail() && queue_.at(cursor_).started && cursor_psn().since(sent_) < 0) {
        const SendWqe& wqe = queue_.at(cursor_);
        if (is_local(wqe.opcode)) {
            ++cursor_;
            continue;
        }
        if (plan_.is_behind(cursor_psn())) {
            const bool gone = front_ - queue_.head() > queue_.tail() - queue_.head();
            cursor_ = gone ? queue_.head() : front_;
            cursor_packet_ = gone ? 0 : front_packet_;
            break;
        }
        if (!plan_.spares(cursor_psn(), unacknowledged_, has_own_answer(wqe.opcode))) {
            return;
        }
        step();
    }
    plan_.end_pass();
}

}  // namespace cairn::roce::rc
