#include "lib/roce/rc/responder.hpp"

#include <utility>

namespace cairn::roce::rc {

using wire::Operation;

namespace {

// Returns true if a repeated request asks for the same as the saved one, or for a part of the same READ (9.7.5).
bool fits(const SavedAnswer& saved, const wire::Packet& packet, std::uint32_t path_mtu_bytes) noexcept {
    if (saved.operation != packet.traits().operation) {
        return false;
    }
    if (packet.traits().headers.has<wire::AtomicEth>()) {
        const auto& atomic = packet.get<wire::AtomicEth>();
        return atomic.rkey == saved.rkey && atomic.address == saved.address;
    }
    const auto& reth = packet.get<wire::Reth>();
    const std::uint32_t offset = saved.offset_of(packet.bth().psn, path_mtu_bytes);
    const bool within = saved.operation != Operation::ReadRequest || reth.dma_bytes <= saved.bytes - offset;
    return within && reth.rkey == saved.rkey && reth.address == saved.address + offset;
}

}  // namespace

std::optional<ResponderStop> Responder::on_request(const wire::Packet& packet, const PacketOffer& offer, bool& kept,
                                                   Instant now) noexcept {
    kept = false;
    if (failed()) {
        counters_.count(RcCounter::WrongState);
        return std::nullopt;
    }
    if (!reliable_) {
        return on_unreliable(packet);
    }
    switch (judge_psn(packet.bth().psn, expected_)) {
        case PsnVerdict::Gap:
            kept = on_gap(packet, offer);
            return std::nullopt;
        case PsnVerdict::Duplicate:
            on_duplicate(packet);
            return std::nullopt;
        case PsnVerdict::Expected:
            break;
    }
    const bool owes_nak = reply_.kind == Reply::Nak;
    std::optional<ResponderStop> stop = take(packet);
    while (!stop && !early_.empty() && early_.front_psn().since(expected_) <= 0) {
        stop = take_held();
    }
    const bool lacks = early_.take_dropped(expected_) && stage_ == Stage::Running && !stop;
    if (lacks) {
        counters_.count(RcCounter::NakSequenceSent);
        stage_ = Stage::AwaitsResend;
    }
    if (lacks || (owes_nak && !early_.empty() && reply_.kind != Reply::Nak)) {
        owe_nak(wire::NakCode::PsnSequence);  // for another gap
    }
    if (reply_.kind == Reply::None) {
        delayed_acks_.wait(now);
    }
    return stop;
}

void Responder::on_timeout(Instant now) noexcept {
    if (delayed_acks_.take_due(now)) {
        owe_ack();
    }
}

std::optional<ResponderStop> Responder::take(const wire::Packet& packet) noexcept {
    if (xrc_ && !find_receiver(packet)) [[unlikely]] {
        return refuse(RequestVerdict::InvalidRequest);
    }
    std::uint8_t* place = nullptr;
    const RequestVerdict verdict = judge(packet, place);
    return verdict == RequestVerdict::Execute ? act(packet, place) : refuse(verdict);
}

// Finds the queue that the request names, in the target's domain. All packets of a message name the same queue;
// anything else is an invalid request (A14).
bool Responder::find_receiver(const wire::Packet& packet) noexcept {
    const Srqn srqn = packet.get<wire::Xrceth>().srqn;
    const Receiver* const found = xrc_.find(srqn);
    if (found == nullptr || (message_.kind != MessageKind::None && srqn != receiver_.srqn)) {
        return false;
    }
    receiver_ = *found;
    return true;
}

RequestVerdict Responder::judge(const wire::Packet& packet, std::uint8_t*& place) const noexcept {
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
    ask([&]() noexcept { return judge_memory(packet, message_, memory_, key_user(), place); });
    return verdict;
}

RequestVerdict Responder::judge_receive(const wire::Packet& packet) const noexcept {
    const RequestTraits& traits = request_traits(packet.traits().operation);
    const ReceiveHead* const next = traits.takes_receive ? next_receive() : nullptr;
    if (traits.takes_receive && next == nullptr) {
        return RequestVerdict::NotReady;
    }
    if (traits.kind != MessageKind::Send) {
        return RequestVerdict::Execute;
    }
    return judge_room(packet, message_, next != nullptr ? next->bytes : message_.total_bytes);
}

// Refuses a request that would push out an answer that was never sent: the peer then has more outstanding than it may.
RequestVerdict Responder::judge_depth(const wire::Packet& packet) const noexcept {
    if (request_traits(packet.traits().operation).kind != MessageKind::None) {
        return RequestVerdict::Execute;
    }
    const bool persistent = packet.traits().headers.has<wire::Feth>() &&
                            (packet.get<wire::Feth>().placement & wire::Feth::kPersistent) != 0;
    if (persistent && flush_.flush == nullptr) {
        return RequestVerdict::InvalidRequest;
    }
    const bool full = answers_.is_full(attributes_->max_dest_rd_atomic);
    return full ? RequestVerdict::InvalidRequest : RequestVerdict::Execute;
}

const ReceiveHead* Responder::next_receive() const noexcept {
    if (receive_.is_kept) {
        return &receive_.wqe.head;
    }
    return receiver_.receives->empty() ? nullptr : &receiver_.receives->front();
}

void Responder::take_receive() noexcept {
    if (!std::exchange(receive_.is_kept, false)) {
        receiver_.receives->take(receive_.wqe);
    }
}

std::optional<ResponderStop> Responder::act(const wire::Packet& packet, std::uint8_t* place) noexcept {
    const wire::OpcodeTraits& opcode = packet.traits();
    const MessageKind kind = request_traits(opcode.operation).kind;
    stage_ = Stage::Running;
    if (reply_.kind == Reply::Nak) {
        reply_.kind = Reply::None;  // the packet that it asked for has come
    }
    if (kind == MessageKind::None) {
        const RequestVerdict verdict = execute_answered(packet);
        return verdict == RequestVerdict::Execute ? std::nullopt : refuse(verdict);
    }
    if (kind == MessageKind::Write) {
        if (!execute_write(packet, place)) {
            return refuse(RequestVerdict::RemoteAccess);
        }
    } else if (!execute_send(packet)) {
        return refuse(RequestVerdict::RemoteOperational);
    }
    expected_ = expected_.next();
    if (packet.bth().ack_request) {
        owe_ack();
    }
    if (!opcode.ends_message()) {
        return std::nullopt;
    }
    return complete_message(packet) ? std::nullopt : std::optional(ResponderStop::CqOverrun);
}

std::optional<ResponderStop> Responder::refuse(RequestVerdict verdict) noexcept {
    if (verdict == RequestVerdict::NotReady) {
        counters_.count(RcCounter::RnrNakSent);
        stage_ = Stage::AwaitsReceiver;
        owe_nak(attributes_->min_rnr_timer);
        return std::nullopt;
    }
    counters_.count(reliable_ ? RcCounter::NakFatalSent : RcCounter::UnreliableRefused);
    stage_ = Stage::Failed;
    const bool local = verdict == RequestVerdict::RemoteOperational;
    if (local || verdict == RequestVerdict::TooLong) {
        if (message_.kind != MessageKind::Send) {
            take_receive();
        }
        message_ = {};
        const auto status = local ? CompletionStatus::LocalProtection : CompletionStatus::LocalLength;
        // The completion may be lost to an overrun: the queue pair stops in any case.
        (void)receiver_.completions->push(receive_completion(receive_.wqe.head.wr_id, status));
    }
    if (verdict == RequestVerdict::FlushFailed) {
        owe_nak(wire::NakCode::RemoteOperational);
        return ResponderStop::FlushError;
    }
    const bool access = verdict == RequestVerdict::RemoteAccess;
    owe_nak(access  ? wire::NakCode::RemoteAccess
            : local ? wire::NakCode::RemoteOperational
                    : wire::NakCode::InvalidRequest);
    return access ? ResponderStop::AccessError : local ? ResponderStop::LocalError : ResponderStop::RequestError;
}

// Reports a gap once until the missing packet comes. A selective peer also gets a report whenever there is news of
// missing packets, or it asks.
bool Responder::on_gap(const wire::Packet& packet, const PacketOffer& offer) noexcept {
    counters_.count(RcCounter::OutOfSequence);
    const Psn psn = packet.bth().psn;
    const bool new_gap = early_.opens_gap(psn);
    const bool kept = is_selective() && early_.hold(psn, expected_, offer);
    if (kept) {
        counters_.count(RcCounter::Held);
    } else if (is_selective() && !early_.empty()) {
        early_.note_dropped(psn);
    }
    if (stage_ == Stage::AwaitsReceiver || (stage_ == Stage::AwaitsResend && !is_selective())) {
        return kept;
    }
    if (stage_ == Stage::Running || (kept && new_gap) || packet.bth().ack_request) {
        counters_.count(RcCounter::NakSequenceSent);
        stage_ = Stage::AwaitsResend;
        owe_nak(wire::NakCode::PsnSequence);
    }
    return kept;
}

// Answers a duplicate without executing it: by an acknowledgement of everything executed, or from the saved answers
// (9.7.5, C9-105).
void Responder::on_duplicate(const wire::Packet& packet) noexcept {
    counters_.count(RcCounter::DuplicateRequest);
    const Operation operation = packet.traits().operation;
    if (packet.traits().role == wire::Role::Request && request_traits(operation).kind != MessageKind::None) {
        owe_ack();
        return;
    }
    const Psn psn = packet.bth().psn;
    SavedAnswer* const saved = answers_.find(psn, attributes_->max_dest_rd_atomic);
    if (saved == nullptr || !fits(*saved, packet, attributes_->path_mtu_bytes)) {
        counters_.count(RcCounter::DuplicateUnknown);
        return;
    }
    Psn until = saved->last;
    if (saved->operation == Operation::ReadRequest) {
        const std::uint32_t bytes = packet.get<wire::Reth>().dma_bytes;
        saved->end = saved->offset_of(psn, attributes_->path_mtu_bytes) + bytes;
        until = psn.plus(responses_for(bytes, attributes_->path_mtu_bytes) - 1);
    }
    answers_.ask_again(*saved, psn, until);
    copied_answers_ = kCopiedAnswers;
}

void Responder::owe_ack() noexcept {
    if (reply_.kind == Reply::None && reliable_) {
        reply_.kind = Reply::Ack;  // a NAK that is owed has the same meaning and more
    }
}

void Responder::owe_nak(const wire::Aeth::Syndrome& syndrome) noexcept {
    reply_ = {reliable_ ? Reply::Nak : Reply::None, syndrome};
}

}  // namespace cairn::roce::rc
