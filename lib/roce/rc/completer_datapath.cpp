// Takes answers (acknowledgements, NAKs, data) and applies them to the outstanding requests.
#include "lib/roce/rc/completer.hpp"

#include <array>
#include <cstring>

#include "lib/roce/qp/scatter.hpp"

namespace cairn::roce::rc {

AnswerEffect Completer::on_answer(const wire::Packet& packet) noexcept {
    switch (judge_answer_psn(packet.bth().psn, side_.unacknowledged, side_.sent)) {
        case AnswerPsnVerdict::Stale:
            side_.counters.count(RcCounter::StaleResponse);
            return {};
        case AnswerPsnVerdict::Unsent:
            side_.counters.count(RcCounter::UnsentResponse);
            return {};
        case AnswerPsnVerdict::Current:
            break;
    }
    if (packet.traits().role == wire::Role::Acknowledge) {
        return on_acknowledge(packet);
    }
    const bool has_aeth = packet.traits().headers.has<wire::Aeth>();
    if (!has_aeth || std::holds_alternative<wire::AckCredits>(packet.get<wire::Aeth>().syndrome)) [[likely]] {
        return on_data(packet);
    }
    return on_map(packet);
}

AnswerEffect Completer::on_acknowledge(const wire::Packet& packet) noexcept {
    const Psn psn = packet.bth().psn;
    const auto& syndrome = packet.get<wire::Aeth>().syndrome;
    if (const auto* code = std::get_if<wire::NakCode>(&syndrome)) {
        return on_nak(*code, psn);
    }
    if (const auto* timer = std::get_if<wire::RnrTimer>(&syndrome)) {
        return on_not_ready(*timer, psn);
    }
    if (!acknowledge(psn)) {
        return {Kind::CqOverrun};
    }
    return psn.since(side_.unacknowledged) >= 0 ? AnswerEffect{Kind::ImpliedNak, {}, psn} : AnswerEffect{};
}

bool Completer::acknowledge(Psn psn) noexcept {
    bool pushed = true;
    while (pushed && psn.since(side_.unacknowledged) >= 0) {
        const SendWqe& head = side_.queue.at(side_.queue.head());
        CAIRN_ASSERT(!side_.queue.empty() && head.flags.started);
        if (has_own_answer(head.opcode)) {
            break;
        }
        const bool whole = head.last.since(psn) <= 0;
        side_.unacknowledged = (whole ? head.last : psn).next();
        pushed = !whole || complete_head(CompletionStatus::Success);
    }
    return pushed;
}

// Takes a NAK, which means that the peer executed everything before its PSN.
AnswerEffect Completer::on_nak(wire::NakCode code, Psn psn) noexcept {
    if (!acknowledge(psn.plus(Psn::kMask))) {
        return {Kind::CqOverrun};
    }
    if (code == wire::NakCode::PsnSequence) {
        return {Kind::NakSequence, {}, psn};
    }
    side_.counters.count(RcCounter::NakFatalReceived);
    return end(status_of(code));
}

AnswerEffect Completer::on_not_ready(wire::RnrTimer timer, Psn psn) noexcept {
    side_.counters.count(RcCounter::RnrNakReceived);
    if (!acknowledge(psn.plus(Psn::kMask))) {
        return {Kind::CqOverrun};
    }
    if (side_.unacknowledged != psn) {
        return {Kind::ImpliedNak, {}, psn.plus(Psn::kMask)};  // an answer before it is still to come
    }
    return {Kind::NotReady, timer, psn};
}

// Takes a NAK with a map: the peer executed everything before its PSN, misses that one, and holds the packets of the
// map.
AnswerEffect Completer::on_map(const wire::Packet& packet) noexcept {
    const Psn psn = packet.bth().psn;
    const bool is_map = side_.attributes->selective && packet.traits().operation == wire::Operation::ReadResponseOnly &&
                        packet.get<wire::Aeth>().syndrome == wire::Aeth::Syndrome(wire::NakCode::PsnSequence);
    if (!is_map) {
        side_.counters.count(RcCounter::UnexpectedResponse);
        return {};
    }
    side_.counters.count(RcCounter::NakSequenceReceived);
    return acknowledge(psn.plus(Psn::kMask)) ? AnswerEffect{Kind::Map, {}, psn} : AnswerEffect{Kind::CqOverrun};
}

AnswerEffect Completer::on_data(const wire::Packet& packet) noexcept {
    const Psn psn = packet.bth().psn;
    if (!acknowledge(psn.plus(Psn::kMask))) {
        return {Kind::CqOverrun};
    }
    if (side_.unacknowledged != psn) {
        return {Kind::ImpliedNak, {}, psn};
    }
    const SendWqe& wqe = side_.queue.at(side_.queue.head());
    const bool by_atomic = packet.traits().operation == wire::Operation::AtomicAcknowledge;
    const bool asked = has_own_answer(wqe.opcode) && is_atomic(wqe.opcode) == by_atomic;
    if (!asked) {
        side_.counters.count(RcCounter::UnexpectedResponse);
        return {};
    }
    const CompletionStatus taken = take_data(packet, wqe);
    if (taken != CompletionStatus::Success) {
        return end(taken);
    }
    const bool last = psn == wqe.last;
    side_.unacknowledged = psn.next();
    --side_.read_psns_out;
    return {!last || complete_head(CompletionStatus::Success) ? Kind::DataTaken : Kind::CqOverrun};
}

// Returns Success, or the status with which the request ends.
CompletionStatus Completer::take_data(const wire::Packet& packet, const SendWqe& wqe) noexcept {
    std::array<std::uint8_t, kAtomicBytes> word{};
    std::span<const std::uint8_t> data = packet.payload();
    std::uint32_t offset = 0;
    if (is_atomic(wqe.opcode)) {
        const std::uint64_t original = packet.get<wire::AtomicAckEth>().original;  // memory is in host order
        std::memcpy(word.data(), &original, sizeof(original));
        data = word;
    } else {
        const std::uint32_t mtu = side_.attributes->path_mtu_bytes;
        offset = static_cast<std::uint32_t>(side_.unacknowledged.since(wqe.first)) * mtu;
        const std::uint32_t left = is_read_or_atomic(wqe.opcode) ? wqe.bytes - offset : 0;  // the others carry no data
        if (!has_read_length(packet.traits().place, data.size(), left, mtu)) {
            side_.counters.count(RcCounter::BadResponse);
            return CompletionStatus::BadResponse;
        }
    }
    Pieces pieces;
    if (!find_pieces({side_.memory, side_.pd, Right::LocalWrite}, side_.queue.pieces_at(side_.queue.head()), offset,
                     data.size(), pieces)) {
        return CompletionStatus::LocalProtection;
    }
    return place(pieces, data) ? CompletionStatus::Success : CompletionStatus::LocalProtection;
}

bool Completer::complete_one(CompletionStatus status) noexcept {
    const SendWqe& wqe = side_.queue.at(side_.queue.head());
    const WorkTraits& work = work_traits(wqe.opcode);
    Completion completion;
    completion.wr_id = wqe.wr_id;
    completion.status = status;
    completion.opcode = work.completion;
    completion.qpn = side_.qpn;
    completion.bytes = work.data == WorkData::Fetched ? wqe.bytes : 0;
    if (wqe.flags.started && work.end == WorkEnd::OwnAnswer) {
        --side_.reads_out;
    }
    const bool wanted = wqe.flags.signalled || status != CompletionStatus::Success;
    side_.queue.pop();
    completion.behind = side_.queue.head();
    completion.sends = &side_.queue;
    return !wanted || completions_.push(completion);
}

bool Completer::complete_head(CompletionStatus status) noexcept {
    SendQueue& queue = side_.queue;
    bool pushed = complete_one(status);
    while (status == CompletionStatus::Success && !queue.empty() && queue.at(queue.head()).flags.started &&
           is_local(queue.at(queue.head()).opcode)) {
        pushed = complete_one(status) && pushed;
    }
    return pushed;
}

bool Completer::flush() noexcept {
    bool pushed = true;
    while (!side_.queue.empty()) {
        pushed = complete_head(CompletionStatus::Flushed) && pushed;
    }
    side_.unacknowledged = side_.sent;
    side_.read_psns_out = 0;
    return pushed;
}

}  // namespace cairn::roce::rc
