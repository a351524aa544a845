// Chooses the requests that may be sent, and makes their packets.
#include "lib/roce/rc/requester.hpp"

#include <algorithm>
#include <utility>

namespace cairn::roce::rc {

namespace {

// Returns true if the answer to the request is wanted soon. It may make a completion, the peer may be late with it, or
// the end of a region may wait for all packets before it.
bool is_wanted_soon(const SendSide& side, std::uint32_t position, const SendWqe& wqe, bool again) noexcept {
    if (again || wqe.flags.signalled || has_own_answer(wqe.opcode)) {
        return true;
    }
    return position + 1 != side.queue.tail() && side.ends_region(side.queue.at(position + 1));
}

// Finds the payload of the packet at `offset` of the request at `position`. Returns false if the request's SGEs are not
// allowed.
bool find_payload(SendSide& side, std::uint32_t position, WorkData data, std::uint32_t offset,
                  OutPacket& out) noexcept {
    out.payload.count = 0;
    out.payload_bytes = 0;
    if (data != WorkData::Sent) {
        return true;  // the memory of fetched data is looked up when the answer comes
    }
    const SendWqe& wqe = side.queue.at(position);
    out.payload_bytes = std::min(side.attributes->path_mtu_bytes, wqe.bytes - offset);
    if (!wqe.flags.is_inline) {
        return find_pieces({side.memory, side.pd, {}}, side.queue.pieces_at(position), offset, out.payload_bytes,
                           out.payload);
    }
    if (out.payload_bytes != 0) {
        out.payload.at[out.payload.count++] = side.queue.inline_at(position).subspan(offset, out.payload_bytes);
        out.payload.sendable = false;
    }
    return true;
}

}  // namespace

bool Requester::may_send(Instant now, bool drain) const noexcept {
    const SendSide& side = this->side();
    if (cursor_.is_at_end(side) || timers_.holds_back(now)) {
        return false;
    }
    const SendWqe& wqe = side.queue.at(cursor_.position());
    if (!wqe.flags.started) {
        return !drain && may_start(wqe);
    }
    if (cursor_.psn(side).since(side.sent) < 0 || has_own_answer(wqe.opcode)) {
        return true;  // sent again: it had room before
    }
    return side.outstanding_psns() - side.read_psns_out < window_packets_;
}

bool Requester::may_start(const SendWqe& wqe) const noexcept {
    const SendSide& side = this->side();
    if (wqe.flags.fence && side.reads_out != 0) {
        return false;
    }
    const std::uint32_t out = side.outstanding_psns();
    if (has_own_answer(wqe.opcode)) {
        return side.reads_out < side.attributes->max_rd_atomic &&
               out + side.psns_of(wqe) + window_packets_ < kMaxOutstandingPsns;
    }
    return out - side.read_psns_out < window_packets_;
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
    const WorkTraits& work = work_traits(wqe.opcode);
    const std::uint32_t offset = cursor_.packet() * side.attributes->path_mtu_bytes;
    if (!find_payload(side, cursor_.position(), work.data, offset, out)) {
        // Earlier requests complete first, so that completions stay in order.
        if (cursor_.is_at_oldest(side)) {
            stop = completer_.fail(CompletionStatus::LocalProtection);
        }
        return false;
    }
    if (!wqe.flags.started) {
        side.begin(wqe);
    }
    timers_.end_hold();
    const bool whole = work.end == WorkEnd::OwnAnswer;
    const Psn psn = wqe.first.plus(cursor_.packet());
    const Leaving packet{psn, (whole ? wqe.last : psn).next(), whole || psn == wqe.last, whole};
    write(out, wqe, work.packets, packet, offset);
    if (!move_on(packet, now)) {
        stop = RequesterStop::CqOverrun;
    }
    return true;
}

void Requester::write(OutPacket& out, const SendWqe& wqe, const WorkPackets& operations, const Leaving& packet,
                      std::uint32_t offset) noexcept {
    const SendSide& side = this->side();
    const QpAttributes& attributes = *side.attributes;
    out.again = packet.psn.since(side.sent) < 0;
    wire::Bth bth;
    bth.solicited = wqe.flags.solicited && packet.last;
    bth.migration = attributes.migrated;
    bth.pkey = attributes.pkey;
    bth.dest_qpn = attributes.dest_qpn;
    const bool soon = !ack_requests_.peer_delays() || is_wanted_soon(side, cursor_.position(), wqe, out.again);
    bth.ack_request = reliable_ && ack_requests_.ask(packet.behind, packet.last, soon);
    bth.psn = packet.psn;
    // A WRITE without immediate data completes nothing at the receiver. So n WRITEs of one packet look the same to it
    // as one WRITE of n.
    const bool apart = equal_writes_ && wqe.opcode == WorkOpcode::RdmaWrite;
    const std::uint32_t done = packet.whole || apart ? offset : 0;  // a READ goes on after the part that it has
    const wire::Reth reth{wqe.remote_address + done, wqe.rkey, apart ? out.payload_bytes : wqe.bytes - done};
    const wire::AtomicEth atomic{wqe.remote_address, wqe.rkey, wqe.swap_or_add, wqe.compare};
    // XRC: directly after the BTH of every request packet (annex A14). The patches that would bring XRC to Linux rxe
    // have it there as well.
    const wire::Xrceth xrceth{wqe.srqn};
    write_headers(out, std::move(bth), service_,
                  operations.at(packet.whole || apart || offset == 0, packet.last || apart), xrceth, wqe.flush(), reth,
                  atomic, wire::ImmDt{wqe.immediate}, wire::Ieth{wqe.invalidate});
}

bool Requester::move_on(const Leaving& packet, Instant now) noexcept {
    SendSide& side = this->side();
    cursor_.step(packet.last);
    if (packet.behind.since(side.sent) > 0) {  // for the first time
        side.sent = packet.behind;
        cursor_.note_front();
        if (packet.last && ack_requests_.asked_until() == packet.behind) {
            timers_.time(packet.psn, now);  // for a READ: its first response
        }
    }
    if (!reliable_) {
        side.unacknowledged = side.sent;  // no answer will come
        return !packet.last || completer_.complete_head(CompletionStatus::Success);
    }
    if (!timers_.is_armed()) {
        arm(now);
    }
    return true;
}

}  // namespace cairn::roce::rc
