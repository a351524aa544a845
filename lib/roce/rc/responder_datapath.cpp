#include "lib/roce/rc/responder.hpp"

#include <utility>

namespace cairn::roce::rc {

using wire::Operation;

ResponderResult Responder::on_request(const wire::Packet& packet, const PacketOffer& offer, bool& kept) noexcept {
    kept = false;
    if (failed_) {
        counters_.count(RcCounter::WrongState);
        return ResponderResult::Ok;
    }
    if (!reliable_) {
        return on_unreliable(packet);
    }
    switch (judge_psn(packet.bth().psn, expected_)) {
        case PsnVerdict::Gap:
            kept = on_gap(packet, offer);
            return ResponderResult::Ok;
        case PsnVerdict::Duplicate:
            on_duplicate(packet);
            return ResponderResult::Ok;
        case PsnVerdict::Expected:
            break;
    }
    const bool owes_nak = reply_ == Reply::Nak;
    ResponderResult result = take(packet);
    while (result == ResponderResult::Ok && !chain_.empty() && held_->front_psn(chain_).since(expected_) <= 0) {
        result = take_held();
    }
    const bool lacks = lacks_dropped() && !awaits_resend_ && result == ResponderResult::Ok;
    if (lacks) {
        counters_.count(RcCounter::NakSequenceSent);
        awaits_resend_ = true;
    }
    if (lacks || (owes_nak && !chain_.empty() && reply_ != Reply::Nak)) {
        owe_nak(wire::NakCode::PsnSequence);  // of another gap
    }
    return result;
}

ResponderResult Responder::take(const wire::Packet& packet) noexcept {
    if (xrc_ && !find_receiver(packet)) [[unlikely]] {
        return refuse(RequestVerdict::InvalidRequest);
    }
    const RequestVerdict verdict = judge(packet);
    return verdict == RequestVerdict::Execute ? act(packet) : refuse(verdict);
}

// All packets of a message name the same queue, in the target's domain: anything else is an invalid request (A14).
bool Responder::find_receiver(const wire::Packet& packet) noexcept {
    const Srqn srqn = packet.get<wire::Xrceth>().srqn;
    const Receiver* const found = xrc_.find(srqn);
    if (found == nullptr || (message_.kind != MessageKind::None && srqn != receiver_.srqn)) {
        return false;
    }
    receiver_ = *found;
    return true;
}

RequestVerdict Responder::judge(const wire::Packet& packet) const noexcept {
    const wire::OpcodeTraits& opcode = packet.traits();
    RequestVerdict verdict = judge_sequence(opcode, message_.kind);
    const auto ask = [&verdict](auto&& judge_next) noexcept {
        if (verdict == RequestVerdict::Execute) {
            verdict = judge_next();
        }
    };
    ask([&]() noexcept { return judge_rights(packet, attributes_->access); });
    ask([&]() noexcept { return judge_depth(packet); });
    ask([&]() noexcept { return judge_length(packet, message_, attributes_->path_mtu_bytes); });
    ask([&]() noexcept { return judge_receive(packet); });
    ask([&]() noexcept { return judge_memory(packet, message_, memory_, key_user()); });
    return verdict;
}

RequestVerdict Responder::judge_receive(const wire::Packet& packet) const noexcept {
    const RequestTraits& traits = request_traits(packet.traits().operation);
    const ReceiveWqe* const next = traits.takes_receive ? next_receive() : nullptr;
    if (traits.takes_receive && next == nullptr) {
        return RequestVerdict::NotReady;
    }
    if (traits.kind != MessageKind::Send) {
        return RequestVerdict::Execute;
    }
    return judge_room(packet, message_, next != nullptr ? next->bytes : message_.total_bytes);
}

// The answer that would be forgotten for this one has been sent once, or the peer has more outstanding than it may.
RequestVerdict Responder::judge_depth(const wire::Packet& packet) const noexcept {
    if (request_traits(packet.traits().operation).kind != MessageKind::None) {
        return RequestVerdict::Execute;
    }
    const bool persistent = packet.traits().headers.has<wire::Feth>() &&
                            (packet.get<wire::Feth>().placement & wire::Feth::kPersistent) != 0;
    if (persistent && flush_.flush == nullptr) {
        return RequestVerdict::InvalidRequest;
    }
    const std::uint32_t depth = attributes_->max_dest_rd_atomic;
    const SavedAnswer& oldest = saved_[(saved_count_ - depth) % kMaxRdAtomic];
    return depth == 0 || (oldest.queued && !oldest.answered) ? RequestVerdict::InvalidRequest : RequestVerdict::Execute;
}

const ReceiveWqe* Responder::next_receive() const noexcept {
    if (receive_kept_) {
        return &receive_;
    }
    return receiver_.receives->empty() ? nullptr : &receiver_.receives->front();
}

ReceiveWqe Responder::take_receive() noexcept {
    return std::exchange(receive_kept_, false) ? receive_ : receiver_.receives->take();
}

ResponderResult Responder::act(const wire::Packet& packet) noexcept {
    const wire::OpcodeTraits& opcode = packet.traits();
    const MessageKind kind = request_traits(opcode.operation).kind;
    awaits_resend_ = false;
    if (reply_ == Reply::Nak) {
        reply_ = Reply::None;  // what it asked for is here
    }
    if (kind == MessageKind::None) {
        return execute_answered(packet) ? ResponderResult::Ok : refuse(RequestVerdict::FlushFailed);
    }
    if (kind == MessageKind::Write) {
        execute_write(packet);
    } else if (!execute_send(packet)) {
        return refuse(RequestVerdict::RemoteOperational);
    }
    expected_ = expected_.next();
    if (packet.bth().ack_request) {
        owe_ack();
    }
    if (!opcode.ends_message()) {
        return ResponderResult::Ok;
    }
    return complete_message(packet) ? ResponderResult::Ok : ResponderResult::CqOverrun;
}

ResponderResult Responder::refuse(RequestVerdict verdict) noexcept {
    if (verdict == RequestVerdict::NotReady) {
        counters_.count(RcCounter::RnrNakSent);
        awaits_resend_ = true;
        owe_nak(attributes_->min_rnr_timer);
        return ResponderResult::Ok;
    }
    counters_.count(reliable_ ? RcCounter::NakFatalSent : RcCounter::UnreliableRefused);
    failed_ = true;
    const bool local = verdict == RequestVerdict::RemoteOperational;
    if (local || verdict == RequestVerdict::TooLong) {
        const ReceiveWqe failed = message_.kind == MessageKind::Send ? receive_ : take_receive();
        message_ = {};
        const auto status = local ? CompletionStatus::LocalProtection : CompletionStatus::LocalLength;
        // Lost to an overrun: the queue pair stops as it is.
        (void)receiver_.completions->push(receive_completion(failed.wr_id, status));
    }
    if (verdict == RequestVerdict::FlushFailed) {
        owe_nak(wire::NakCode::RemoteOperational);
        return ResponderResult::FlushError;
    }
    const bool access = verdict == RequestVerdict::RemoteAccess;
    owe_nak(access  ? wire::NakCode::RemoteAccess
            : local ? wire::NakCode::RemoteOperational
                    : wire::NakCode::InvalidRequest);
    return access ? ResponderResult::AccessError : local ? ResponderResult::LocalError : ResponderResult::RequestError;
}

// Reported once until what is missing comes; selective also whenever there is news of what is missing, or the peer
// asks.
bool Responder::on_gap(const wire::Packet& packet, const PacketOffer& offer) noexcept {
    counters_.count(RcCounter::OutOfSequence);
    const Psn psn = packet.bth().psn;
    const bool new_gap = chain_.empty() || psn.since(held_->back_psn(chain_)) > 1;
    const bool kept = is_selective() && try_hold(packet, offer);
    if (is_selective() && !kept && !chain_.empty()) {
        note_dropped(psn);
    }
    if (awaits_resend_ && (!is_selective() || std::holds_alternative<wire::RnrTimer>(nak_))) {
        return kept;
    }
    if (!awaits_resend_ || (kept && new_gap) || packet.bth().ack_request) {
        counters_.count(RcCounter::NakSequenceSent);
        awaits_resend_ = true;
        owe_nak(wire::NakCode::PsnSequence);
    }
    return kept;
}

// Never executed: acknowledged up to what was, or answered from what was saved (9.7.5, C9-105).
void Responder::on_duplicate(const wire::Packet& packet) noexcept {
    counters_.count(RcCounter::DuplicateRequest);
    const Operation operation = packet.traits().operation;
    if (packet.traits().role == wire::Role::Request && request_traits(operation).kind != MessageKind::None) {
        owe_ack();
        return;
    }
    const Psn psn = packet.bth().psn;
    SavedAnswer* const saved = find_saved(psn);
    if (saved == nullptr || !fits(*saved, packet)) {
        counters_.count(RcCounter::DuplicateUnknown);
        return;
    }
    ask_again(*saved, packet);
}

std::uint32_t Responder::offset_of(Psn psn, const SavedAnswer& saved) const noexcept {
    return static_cast<std::uint32_t>(psn.since(saved.first)) * attributes_->path_mtu_bytes;
}

// What the peer asks for is what it asked for then, of a READ perhaps a part (9.7.5).
bool Responder::fits(const SavedAnswer& saved, const wire::Packet& packet) const noexcept {
    if (saved.operation != packet.traits().operation) {
        return false;
    }
    if (packet.traits().headers.has<wire::AtomicEth>()) {
        const auto& atomic = packet.get<wire::AtomicEth>();
        return atomic.rkey == saved.rkey && atomic.address == saved.address;
    }
    const auto& reth = packet.get<wire::Reth>();
    const std::uint32_t offset = offset_of(packet.bth().psn, saved);
    const bool within = saved.operation != Operation::ReadRequest || reth.dma_bytes <= saved.bytes - offset;
    return within && reth.rkey == saved.rkey && reth.address == saved.address + offset;
}

// The peer goes back: answers behind it that are under way start again too, in their order.
void Responder::ask_again(SavedAnswer& saved, const wire::Packet& packet) noexcept {
    queued_answers_ += saved.queued ? 0 : 1;
    saved.queued = true;
    copied_answers_ = kCopiedAnswers;
    saved.from = saved.next = packet.bth().psn;
    saved.until = saved.last;
    if (saved.operation == Operation::ReadRequest) {
        const std::uint32_t bytes = packet.get<wire::Reth>().dma_bytes;
        saved.end = offset_of(saved.from, saved) + bytes;
        saved.until = saved.from.plus(responses_for(bytes) - 1);
    }
    for (SavedAnswer& later : saved_) {
        if (later.queued && later.first.since(saved.last) > 0) {
            later.next = later.from;
        }
    }
}

SavedAnswer* Responder::find_saved(Psn psn) noexcept {
    for (std::uint32_t back = 1; back <= attributes_->max_dest_rd_atomic; ++back) {
        SavedAnswer& saved = saved_at(saved_count_ - back);
        const bool used = saved.operation != Operation{};  // no READ or atomic has this code
        if (used && psn.since(saved.first) >= 0 && saved.last.since(psn) >= 0) {
            return &saved;
        }
    }
    return nullptr;
}

void Responder::owe_ack() noexcept {
    if (reply_ == Reply::None && reliable_) {
        reply_ = Reply::Ack;  // a NAK that is owed says the same and more
    }
}

void Responder::owe_nak(const wire::Aeth::Syndrome& syndrome) noexcept {
    reply_ = reliable_ ? Reply::Nak : Reply::None;
    nak_ = syndrome;
}

}  // namespace cairn::roce::rc
