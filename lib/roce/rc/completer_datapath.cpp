// The requester's answers: acknowledgements, NAKs, data; what they complete and what they have sent again.
#include <array>

#include "lib/roce/rc/requester.hpp"
#include "lib/roce/rc/timers.hpp"

namespace cairn::roce::rc {

namespace {

using enum RequesterResult;

constexpr std::array<CompletionOpcode, static_cast<std::size_t>(WorkOpcode::Count)> kCompletionOpcodes{
    CompletionOpcode::Send,        CompletionOpcode::Send,
    CompletionOpcode::Send,        CompletionOpcode::RdmaWrite,
    CompletionOpcode::RdmaWrite,   CompletionOpcode::RdmaRead,
    CompletionOpcode::CompareSwap, CompletionOpcode::FetchAdd,
    CompletionOpcode::BindWindow,  CompletionOpcode::LocalInvalidate,
    CompletionOpcode::AtomicWrite, CompletionOpcode::Flush,
};

}  // namespace

RequesterResult Requester::on_answer(const wire::Packet& packet, Instant now) noexcept {
    switch (judge_answer_psn(packet.bth().psn, unacknowledged_, sent_)) {
        case AnswerPsnVerdict::Stale:
            counters_.count(RcCounter::StaleResponse);
            return Ok;
        case AnswerPsnVerdict::Unsent:
            counters_.count(RcCounter::UnsentResponse);
            return Ok;
        case AnswerPsnVerdict::Current:
            break;
    }
    if (packet.traits().role == wire::Role::Acknowledge) {
        return on_acknowledge(packet, now);
    }
    const bool has_aeth = packet.traits().headers.has<wire::Aeth>();
    if (!has_aeth || std::holds_alternative<wire::AckCredits>(packet.get<wire::Aeth>().syndrome)) [[likely]] {
        return on_data(packet, now);
    }
    if (attributes_->selective && packet.traits().operation == wire::Operation::ReadResponseOnly) {
        return on_map(packet, now);
    }
    counters_.count(RcCounter::UnexpectedResponse);
    return Ok;
}

RequesterResult Requester::on_acknowledge(const wire::Packet& packet, Instant now) noexcept {
    const Psn psn = packet.bth().psn;
    const auto& syndrome = packet.get<wire::Aeth>().syndrome;
    if (const auto* code = std::get_if<wire::NakCode>(&syndrome)) {
        return on_nak(*code, psn, now);
    }
    if (const auto* timer = std::get_if<wire::RnrTimer>(&syndrome)) {
        return on_rnr(*timer, psn, now);
    }
    if (!acknowledge(psn, now)) {
        return CqOverrun;
    }
    return psn.since(unacknowledged_) >= 0 ? recover(RcCounter::ImpliedNak, psn, now) : Ok;
}

bool Requester::acknowledge(Psn psn, Instant now) noexcept {
    const Psn before = unacknowledged_;
    bool pushed = true;
    while (pushed && psn.since(unacknowledged_) >= 0) {
        const SendWqe& head = queue_.at(queue_.head());
        CAIRN_ASSERT(!queue_.empty() && head.started);
        if (has_own_answer(head.opcode)) {
            break;
        }
        const bool whole = head.last.since(psn) <= 0;
        unacknowledged_ = (whole ? head.last : psn).next();
        pushed = !whole || complete_head(CompletionStatus::Success);
    }
    if (unacknowledged_ != before) {
        on_progress(now);
    }
    return pushed;
}

// A NAK says that all before its PSN is there.
RequesterResult Requester::on_nak(wire::NakCode code, Psn psn, Instant now) noexcept {
    if (!acknowledge(psn.plus(Psn::kMask), now)) {
        return CqOverrun;
    }
    if (code == wire::NakCode::PsnSequence) {
        plan_.forget_map();
        return recover(RcCounter::NakSequenceReceived, psn, now);
    }
    counters_.count(RcCounter::NakFatalReceived);
    return fail(status_of(code));
}

RequesterResult Requester::on_rnr(wire::RnrTimer timer, Psn psn, Instant now) noexcept {
    counters_.count(RcCounter::RnrNakReceived);
    if (!acknowledge(psn.plus(Psn::kMask), now)) {
        return CqOverrun;
    }
    if (unacknowledged_ != psn) {
        return recover(RcCounter::ImpliedNak, psn.plus(Psn::kMask), now);  // that one is still to come
    }
    if (cursor_psn() == psn) {
        return Ok;  // waiting already
    }
    if (rnr_retries_left_ == 0) {
        return fail(CompletionStatus::RnrRetryExceeded);
    }
    rnr_retries_left_ -= attributes_->rnr_retry == kRnrRetryForEver ? 0 : 1;
    plan_.forget_pass();
    go_back();
    disarm();
    timers_.arm(Timer::NotReady, now + rnr_delay(timer));
    return Ok;
}

RequesterResult Requester::on_data(const wire::Packet& packet, Instant now) noexcept {
    const Psn psn = packet.bth().psn;
    if (!acknowledge(psn.plus(Psn::kMask), now)) {
        return CqOverrun;
    }
    if (unacknowledged_ != psn) {
        return recover(RcCounter::ImpliedNak, psn, now);
    }
    SendWqe& wqe = queue_.at(queue_.head());
    const bool by_atomic = packet.traits().operation == wire::Operation::AtomicAcknowledge;
    const bool asked = has_own_answer(wqe.opcode) && is_atomic(wqe.opcode) == by_atomic;
    if (!asked) {
        counters_.count(RcCounter::UnexpectedResponse);
        return Ok;
    }
    const RequesterResult taken = take_data(packet, wqe);
    if (taken != Ok) {
        return taken;
    }
    const bool last = psn == wqe.last;
    unacknowledged_ = psn.next();
    --read_psns_out_;
    const bool pushed = !last || complete_head(CompletionStatus::Success);
    on_progress(now);
    // Acknowledged while this answer was missing.
    const bool all_pushed = acknowledge(plan_.executed_until().plus(Psn::kMask), now) && pushed;
    return all_pushed ? Ok : CqOverrun;
}

RequesterResult Requester::take_data(const wire::Packet& packet, SendWqe& wqe) noexcept {
    std::array<std::uint8_t, kAtomicBytes> word{};
    std::span<const std::uint8_t> data = packet.payload();
    std::uint32_t offset = 0;
    if (is_atomic(wqe.opcode)) {
        const std::uint64_t original = packet.get<wire::AtomicAckEth>().original;  // memory is in host order
        std::memcpy(word.data(), &original, sizeof(original));
        data = word;
    } else {
        const std::uint32_t mtu = attributes_->path_mtu_bytes;
        offset = static_cast<std::uint32_t>(unacknowledged_.since(wqe.first)) * mtu;
        const std::uint32_t left = wqe.opcode == WorkOpcode::RdmaRead ? wqe.bytes - offset : 0;  // others: just done
        const DataVerdict verdict = judge_read_response(packet.traits().place, data.size(), left, mtu);
        if (verdict != DataVerdict::Good) {
            counters_.count(RcCounter::BadResponse);
            return fail(CompletionStatus::BadResponse);
        }
    }
    Pieces pieces;
    if (!find_pieces({memory_, pd_, Right::LocalWrite}, wqe.pieces(), offset, data.size(), pieces)) {
        return fail(CompletionStatus::LocalProtection);
    }
    place(pieces, data);
    return Ok;
}

// Something was lost: a NAK says so, or an answer that lies behind a READ or atomic still waiting for its own
// (9.7.5). Once until there is progress: many that say the same may be on their way, each would send all again, and
// if going back did not help the timeout does.
RequesterResult Requester::recover(RcCounter reason, Psn newest, Instant now) noexcept {
    counters_.count(reason);
    if (attributes_->selective && reason == RcCounter::ImpliedNak) {
        plan_.executed(newest.next());
        patch(newest, now);
        return Ok;
    }
    if (recovered_ || cursor_psn() == unacknowledged_) {
        return Ok;
    }
    recovered_ = true;
    return retry(now);
}

RequesterResult Requester::retry(Instant now) noexcept {
    if (retries_left_ == 0) {
        return fail(CompletionStatus::RetryExceeded);
    }
    --retries_left_;
    plan_.forget_pass();
    go_back();
    arm(now);
    return Ok;
}

void Requester::go_back() noexcept {
    cursor_ = queue_.head();
    const bool midway = !queue_.empty() && queue_.at(cursor_).started;
    cursor_packet_ = midway ? static_cast<std::uint32_t>(unacknowledged_.since(queue_.at(cursor_).first)) : 0;
    timed_.reset();  // an answer may be to either copy (Karn)
}

void Requester::on_progress(Instant now) noexcept {
    retries_left_ = attributes_->retry_count;
    rnr_retries_left_ = attributes_->rnr_retry;
    timers_.stop(Timer::NotReady);
    recovered_ = false;
    silences_ = 0;
    measure(now);
    plan_.on_progress(unacknowledged_);
    const bool left_behind = cursor_ - queue_.head() > queue_.tail() - queue_.head();
    if (left_behind || cursor_psn().since(unacknowledged_) < 0) {
        go_back();  // what was to be sent again has arrived after all
    }
    arm(now);
}

bool Requester::complete_one(CompletionStatus status) noexcept {
    const SendWqe& wqe = queue_.at(queue_.head());
    Completion completion;
    completion.wr_id = wqe.wr_id;
    completion.status = status;
    completion.opcode = kCompletionOpcodes[static_cast<std::size_t>(wqe.opcode)];
    completion.qpn = qpn_;
    completion.bytes = is_read_or_atomic(wqe.opcode) ? wqe.bytes : 0;
    if (wqe.started && has_own_answer(wqe.opcode)) {
        --reads_out_;
    }
    const bool wanted = wqe.signalled || status != CompletionStatus::Success;
    queue_.pop();
    return !wanted || completions_.push(completion);
}

// Local requests that are done and waited only for those before them complete with it.
bool Requester::complete_head(CompletionStatus status) noexcept {
    bool pushed = complete_one(status);
    while (status == CompletionStatus::Success && !queue_.empty() && queue_.at(queue_.head()).started &&
           is_local(queue_.at(queue_.head()).opcode)) {
        pushed = complete_one(status) && pushed;
    }
    return pushed;
}

RequesterResult Requester::fail(CompletionStatus status) noexcept {
    return complete_head(status) ? Failed : CqOverrun;
}

bool Requester::flush() noexcept {
    bool pushed = true;
    while (!queue_.empty()) {
        pushed = complete_head(CompletionStatus::Flushed) && pushed;
    }
    cursor_ = queue_.head();
    cursor_packet_ = 0;
    front_ = cursor_;
    front_packet_ = 0;
    plan_ = ResendPlan(sent_);
    unacknowledged_ = sent_;
    read_psns_out_ = 0;
    disarm();
    timers_.stop(Timer::NotReady);
    return pushed;
}

}  // namespace cairn::roce::rc
