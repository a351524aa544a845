// Composes answers: READ responses, atomic and plain acknowledgements, NAKs.
#include <algorithm>
#include <utility>

#include "lib/roce/rc/responder.hpp"

namespace cairn::roce::rc {

namespace {

using wire::Operation;

constexpr wire::AckCredits kNoFlowControl{31};

Operation response_operation(bool first, bool last) noexcept {
    if (first) {
        return last ? Operation::ReadResponseOnly : Operation::ReadResponseFirst;
    }
    return last ? Operation::ReadResponseLast : Operation::ReadResponseMiddle;
}

}  // namespace

bool Responder::poll_response(OutPacket& out) noexcept {
    out.again = false;
    while (answers_.any_due()) {
        if (emit_answer(out, answers_.oldest_due())) {
            return true;
        }
    }
    switch (std::exchange(reply_.kind, Reply::None)) {
        case Reply::None:
            return false;
        case Reply::Ack:
            emit_reply(out, expected_.plus(Psn::kMask), kNoFlowControl);  // the PSN before
            return true;
        case Reply::Nak:
            if (!early_.empty() && reply_.nak == wire::Aeth::Syndrome(wire::NakCode::PsnSequence)) {
                emit_map(out);
            } else {
                emit_reply(out, expected_, reply_.nak);
            }
            return true;
    }
    return false;
}

// A READ that was answered may be asked for again while its memory is no longer the peer's. Such a READ is passed over:
// the request may be an old one, resent or late. Its owner has taken the memory back since it knew that the READ was
// done. A peer that lacks the answer asks until it gives up.
bool Responder::emit_answer(OutPacket& out, SavedAnswer& saved) noexcept {
    const bool is_atomic = saved.operation == Operation::CompareSwap || saved.operation == Operation::FetchAdd;
    if (!is_atomic) {
        if (const std::optional<MemoryRefusal> refusal = emit_read(out, saved)) {
            if (saved.state == SavedAnswer::State::DueAgain && *refusal != MemoryRefusal::Vanished) {
                counters_.count(RcCounter::DuplicateUnknown);
                answers_.note_sent(saved);
                return false;
            }
            counters_.count(RcCounter::NakFatalSent);
            emit_reply(out, saved.next, wire::NakCode::RemoteAccess);
            drop_answers();
            reply_.kind = Reply::None;
            stage_ = Stage::Failed;
            return true;
        }
    } else {
        out.payload.count = 0;
        out.payload_bytes = 0;
        write_headers(out, bth(saved.next), service_, Operation::AtomicAcknowledge,
                      wire::Aeth{kNoFlowControl, saved.msn}, wire::AtomicAckEth{saved.original});
    }
    if (saved.next != saved.until) {
        saved.next = saved.next.next();
        return true;
    }
    answers_.note_sent(saved);
    if (saved.until.next() == expected_) {  // it acknowledges everything
        delayed_acks_.note_acknowledged();
        reply_.kind = reply_.kind == Reply::Ack ? Reply::None : reply_.kind;
    }
    return true;
}

// Makes a READ response. Returns the refusal if the region or the right is no longer the same as when the READ came.
std::optional<MemoryRefusal> Responder::emit_read(OutPacket& out, SavedAnswer& saved) noexcept {
    const std::uint32_t offset = saved.offset_of(saved.next, attributes_->path_mtu_bytes);
    const std::uint32_t bytes = std::min(attributes_->path_mtu_bytes, saved.end - offset);
    out.payload.count = 0;
    out.payload_bytes = bytes;
    if (bytes != 0) {
        const MemoryView view =
            memory_.find_remote(saved.rkey, {saved.pd, qpn_}, Right::RemoteRead, saved.address + offset, bytes);
        if (view.refusal || !attributes_->access.cover(Right::RemoteRead)) {
            return view.refusal.value_or(MemoryRefusal::NoRight);
        }
        out.payload.at[out.payload.count++] = {view.data, bytes};
        out.payload.sendable = view.sendable && copied_answers_ == 0;
        copied_answers_ -= copied_answers_ != 0 ? 1 : 0;
    }
    const Operation operation = response_operation(saved.next == saved.from, saved.next == saved.until);
    write_headers(out, bth(saved.next), service_, operation, wire::Aeth{kNoFlowControl, saved.msn});
    return std::nullopt;
}

void Responder::emit_reply(OutPacket& out, Psn psn, const wire::Aeth::Syndrome& syndrome) noexcept {
    delayed_acks_.note_acknowledged();
    out.payload.count = 0;
    out.payload_bytes = 0;
    write_headers(out, bth(psn), service_, Operation::Acknowledge, wire::Aeth{syndrome, msn_});
}

wire::Bth Responder::bth(Psn psn) const noexcept {
    wire::Bth bth;
    bth.migration = attributes_->migrated;
    bth.pkey = attributes_->pkey;
    bth.dest_qpn = attributes_->dest_qpn;
    bth.psn = psn;
    return bth;
}

}  // namespace cairn::roce::rc
