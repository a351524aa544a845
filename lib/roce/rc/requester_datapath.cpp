// Requests on their way out: which may be sent, and their packets.
#include "lib/roce/rc/requester.hpp"

#include <algorithm>
#include <utility>

namespace cairn::roce::rc {

namespace {

// The answer to the request: it makes a completion, the peer is late with it, or the end of a region waits for all that
// was sent before.
// mutants: rc-requester-is-wanted-soon
bool is_wanted_soon(const SendSide& side, std::uint32_t position, bool again) noexcept {
    const SendQueue& queue = side.queue;
    const SendWqe& wqe = queue.at(position);
    if (again || wqe.signalled || has_own_answer(wqe.opcode)) {
        return true;
    }
    return position + 1 != queue.tail() && side.ends_region(queue.at(position + 1));
}

}  // namespace

// mutants: rc-requester-may-send
bool Requester::may_send(Instant now, bool drain) const noexcept {
    const SendSide& side = this->side();
    if (cursor_.is_at_end(side) || timers_.holds_back(now)) {
        return false;
    }
    const SendWqe& wqe = side.queue.at(cursor_.position());
    if (!wqe.started) {
        return !drain && may_start(wqe);
    }
    if (cursor_.psn(side).since(side.sent) < 0 || has_own_answer(wqe.opcode)) {
        return true;  // again: it had room before
    }
    return side.outstanding_psns() - side.read_psns_out < window_packets_;
}

// mutants: rc-requester-may-start
bool Requester::may_start(const SendWqe& wqe) const noexcept {
    const SendSide& side = this->side();
    if (wqe.fence && side.reads_out != 0) {
        return false;
    }
    const std::uint32_t out = side.outstanding_psns();
    if (has_own_answer(wqe.opcode)) {
        return side.reads_out < side.attributes->max_rd_atomic &&
               out + side.psns_of(wqe) + window_packets_ < kMaxOutstandingPsns;
    }
    return out - side.read_psns_out < window_packets_;
}

bool Requester::find_payload(const SendWqe& wqe, std::uint32_t offset, OutPacket& out) noexcept {
    SendSide& side = this->side();
    out.payload.count = 0;
    out.payload_bytes = 0;
    if (work_traits(wqe.opcode).data != WorkData::Sent) {
        return true;  // memory that is fetched to is looked for when the answer comes
    }
    out.payload_bytes = std::min(side.attributes->path_mtu_bytes, wqe.bytes - offset);
    if (!wqe.is_inline) {
        return find_pieces({side.memory, side.pd, {}}, side.queue.pieces_at(cursor_.position()), offset,
                           out.payload_bytes, out.payload);
    }
    if (out.payload_bytes != 0) {
        out.payload.at[out.payload.count++] =
            side.queue.inline_at(cursor_.position()).subspan(offset, out.payload_bytes);
        out.payload.sendable = false;
    }
    return true;
}

bool Requester::poll_request(OutPacket& out, Instant now, bool drain, std::optional<RequesterStop>& stop) noexcept {
    SendSide& side = this->side();
    stop = std::nullopt;
    if (plan_.knows()) {
        cursor_.skip_spared(side, plan_);
    }
    if (!run_local(drain, stop) || !may_send(now, drain)) {
        return false;
    }
    SendWqe& wqe = side.queue.at(cursor_.position());
    const std::uint32_t offset = cursor_.packet() * side.attributes->path_mtu_bytes;
    if (!find_payload(wqe, offset, out)) {
        // Those before it complete first, so that completions stay in order.
        if (cursor_.is_at_oldest(side)) {
            stop = completer_.fail(CompletionStatus::LocalProtection);
        }
        return false;
    }
    if (!wqe.started) {
        side.begin(wqe);
    }
    timers_.end_hold();
    write(out, wqe, offset);
    if (!move_on(wqe, now)) {
        stop = RequesterStop::CqOverrun;
    }
    return true;
}

// mutants: rc-requester-write
void Requester::write(OutPacket& out, const SendWqe& wqe, std::uint32_t offset) noexcept {
    const SendSide& side = this->side();
    const QpAttributes& attributes = *side.attributes;
    const WorkTraits& work = work_traits(wqe.opcode);
    const bool whole = work.end == WorkEnd::OwnAnswer;
    const Psn psn = wqe.first.plus(cursor_.packet());
    const bool last = whole || psn == wqe.last;
    const Psn behind = (whole ? wqe.last : psn).next();
    out.again = psn.since(side.sent) < 0;
    wire::Bth bth;
    bth.solicited = wqe.solicited && last;
    bth.migration = attributes.migrated;
    bth.pkey = attributes.pkey;
    bth.dest_qpn = attributes.dest_qpn;
    const bool soon = !ack_requests_.peer_delays() || is_wanted_soon(side, cursor_.position(), out.again);
    bth.ack_request = reliable_ && ack_requests_.ask(behind, last, soon);
    bth.psn = psn;
    // To its receiver a WRITE without immediate data is its packets: who gets one by one sees no difference.
    const bool apart = equal_writes_ && wqe.opcode == WorkOpcode::RdmaWrite;
    const std::uint32_t done = whole || apart ? offset : 0;  // a READ goes on behind what it has
    const wire::Reth reth{wqe.remote_address + done, wqe.rkey, apart ? out.payload_bytes : wqe.bytes - done};
    const wire::AtomicEth atomic{wqe.remote_address, wqe.rkey, wqe.swap_or_add, wqe.compare};
    // XRC: right behind the BTH of every request packet (annex A14); the patches that would bring XRC to Linux rxe have
    // it there as well.
    const wire::Xrceth xrceth{wqe.srqn};
    write_headers(out, std::move(bth), service_,
                  work.packets.at(whole || apart || cursor_.packet() == 0, last || apart), xrceth, wqe.feth, reth,
                  atomic, wire::ImmDt{wqe.immediate}, wire::Ieth{wqe.invalidate});
}

// mutants: rc-requester-move-on
bool Requester::move_on(const SendWqe& wqe, Instant now) noexcept {
    SendSide& side = this->side();
    const bool whole = has_own_answer(wqe.opcode);
    const Psn psn = wqe.first.plus(cursor_.packet());
    const Psn behind = (whole ? wqe.last : psn).next();
    const bool last = whole || psn == wqe.last;
    const bool first_time = behind.since(side.sent) > 0;
    cursor_.step(side);
    if (first_time) {
        side.sent = behind;
        cursor_.note_front();
        if (last && ack_requests_.asked_until() == behind) {
            timers_.time(psn, now);  // of a READ: its first response
        }
    }
    if (!reliable_) {
        side.unacknowledged = side.sent;  // no answer will come
        return !last || completer_.complete_head(CompletionStatus::Success);
    }
    if (!timers_.is_armed()) {
        arm(now);
    }
    return true;
}

}  // namespace cairn::roce::rc
