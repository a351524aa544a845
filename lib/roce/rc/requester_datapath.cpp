#include "lib/roce/rc/requester.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/roce/rc/timers.hpp"

namespace cairn::roce::rc {

namespace {

using wire::Operation;
using enum wire::Operation;

// The packets of a request's message.
struct Segments {
    Operation first;
    Operation middle;
    Operation last;
    Operation only;
};
constexpr std::array<Segments, static_cast<std::size_t>(WorkOpcode::Count)> kSegments{{
    {SendFirst, SendMiddle, SendLast, SendOnly},
    {SendFirst, SendMiddle, SendLastImmediate, SendOnlyImmediate},
    {SendFirst, SendMiddle, SendLastInvalidate, SendOnlyInvalidate},
    {WriteFirst, WriteMiddle, WriteLast, WriteOnly},
    {WriteFirst, WriteMiddle, WriteLastImmediate, WriteOnlyImmediate},
    {ReadRequest, ReadRequest, ReadRequest, ReadRequest},
    {CompareSwap, CompareSwap, CompareSwap, CompareSwap},
    {FetchAdd, FetchAdd, FetchAdd, FetchAdd},
    {},  // local ones send nothing
    {},
    {AtomicWrite, AtomicWrite, AtomicWrite, AtomicWrite},
    {Flush, Flush, Flush, Flush},
}};

Operation segment(WorkOpcode opcode, bool first, bool last) noexcept {
    const Segments& segments = kSegments[static_cast<std::size_t>(opcode)];
    if (first) {
        return last ? segments.only : segments.first;
    }
    return last ? segments.last : segments.middle;
}

}  // namespace

std::uint32_t Requester::packets_of(const SendWqe& wqe) const noexcept {
    const std::uint32_t mtu = attributes_->path_mtu_bytes;
    const bool one = is_atomic(wqe.opcode) || wqe.opcode == WorkOpcode::Flush;
    return one ? 1 : std::max(1U, (wqe.bytes + mtu - 1) / mtu);
}

Psn Requester::cursor_psn() const noexcept {
    if (cursor_ != queue_.tail() && queue_.at(cursor_).started) {
        return queue_.at(cursor_).first.plus(cursor_packet_);
    }
    return sent_;
}

bool Requester::may_send(Instant now, bool drain) const noexcept {
    if (cursor_ == queue_.tail() || (timers_.is_armed(Timer::NotReady) && !timers_.is_due(Timer::NotReady, now))) {
        return false;
    }
    const SendWqe& wqe = queue_.at(cursor_);
    const Psn psn = cursor_psn();
    if (!wqe.started) {
        return !drain && may_start(wqe);
    }
    if (psn.since(sent_) < 0 || has_own_answer(wqe.opcode)) {
        return true;  // again: it had room before
    }
    return sent_.since(unacknowledged_) - static_cast<std::int32_t>(read_psns_out_) <
           static_cast<std::int32_t>(window_packets_);
}

bool Requester::may_start(const SendWqe& wqe) const noexcept {
    if (wqe.fence && reads_out_ != 0) {
        return false;
    }
    const auto out = static_cast<std::uint32_t>(sent_.since(unacknowledged_));
    if (has_own_answer(wqe.opcode)) {
        return reads_out_ < attributes_->max_rd_atomic && out + packets_of(wqe) + window_packets_ < kMaxOutstandingPsns;
    }
    return out - read_psns_out_ < window_packets_;
}

void Requester::start_wqe(SendWqe& wqe) noexcept {
    const std::uint32_t packets = packets_of(wqe);
    wqe.first = sent_;
    wqe.last = sent_.plus(packets - 1);
    wqe.started = true;
    if (has_own_answer(wqe.opcode)) {
        ++reads_out_;
        read_psns_out_ += packets;
    }
}

bool Requester::find_payload(SendWqe& wqe, std::uint32_t offset, OutPacket& out) noexcept {
    out.payload.count = 0;
    out.payload_bytes = 0;
    if (is_read_or_atomic(wqe.opcode) || wqe.opcode == WorkOpcode::Flush) {
        return true;  // asked for now, found a place for when it comes
    }
    out.payload_bytes = std::min(attributes_->path_mtu_bytes, wqe.bytes - offset);
    if (!wqe.is_inline) {
        return find_pieces({memory_, pd_, {}}, wqe.pieces(), offset, out.payload_bytes, out.payload);
    }
    if (out.payload_bytes != 0) {
        out.payload.at[out.payload.count++] = queue_.inline_at(cursor_).subspan(offset, out.payload_bytes);
        out.payload.sendable = false;
    }
    return true;
}

bool Requester::poll_request(OutPacket& out, Instant now, bool drain, RequesterResult& result) noexcept {
    result = RequesterResult::Ok;
    skip_spared();
    if (!run_local(drain, result) || !may_send(now, drain)) {
        return false;
    }
    SendWqe& wqe = queue_.at(cursor_);
    const std::uint32_t offset = cursor_packet_ * attributes_->path_mtu_bytes;
    if (!find_payload(wqe, offset, out)) {
        // Those before it complete first, so that completions stay in order.
        if (cursor_ == queue_.head()) {
            result = fail(CompletionStatus::LocalProtection);
        }
        return false;
    }
    if (!wqe.started) {
        start_wqe(wqe);
    }
    timers_.stop(Timer::NotReady);
    write(out, wqe, offset);
    if (!move_on(wqe, now)) {
        result = RequesterResult::CqOverrun;
    }
    return true;
}

// AckReq: at the end of each message, and within long ones often enough that the window never waits for it.
void Requester::write(OutPacket& out, const SendWqe& wqe, std::uint32_t offset) noexcept {
    const bool whole = has_own_answer(wqe.opcode);
    const Psn psn = wqe.first.plus(cursor_packet_);
    const bool last = whole || psn == wqe.last;
    ++since_ack_request_;
    out.again = psn.since(sent_) < 0;
    wire::Bth bth;
    bth.solicited = wqe.solicited && last;
    bth.migration = attributes_->migrated;
    bth.pkey = attributes_->pkey;
    bth.dest_qpn = attributes_->dest_qpn;
    bth.ack_request = reliable_ && (last || since_ack_request_ >= ack_interval_);
    bth.psn = psn;
    if (bth.ack_request) {
        since_ack_request_ = 0;
    }
    // To its receiver a WRITE without immediate data is its packets: who gets one by one sees no difference.
    const bool apart = equal_writes_ && wqe.opcode == WorkOpcode::RdmaWrite;
    const std::uint32_t done = whole || apart ? offset : 0;  // a READ goes on behind what it has
    const wire::Reth reth{wqe.remote_address + done, wqe.rkey, apart ? out.payload_bytes : wqe.bytes - done};
    const wire::AtomicEth atomic{wqe.remote_address, wqe.rkey, wqe.swap_or_add, wqe.compare};
    // XRC: right behind the BTH of every request packet (annex A14); the patches that would bring XRC to Linux rxe have
    // it there as well.
    const wire::Xrceth xrceth{wqe.srqn};
    write_headers(out, std::move(bth), service_,
                  segment(wqe.opcode, whole || apart || cursor_packet_ == 0, last || apart), xrceth, wqe.feth, reth,
                  atomic, wire::ImmDt{wqe.immediate}, wire::Ieth{wqe.invalidate});
}

bool Requester::move_on(const SendWqe& wqe, Instant now) noexcept {
    const bool whole = has_own_answer(wqe.opcode);
    const Psn psn = wqe.first.plus(cursor_packet_);
    const Psn behind = (whole ? wqe.last : psn).next();
    const bool last = whole || psn == wqe.last;
    const bool first_time = behind.since(sent_) > 0;
    step();
    if (first_time) {
        sent_ = behind;
        front_ = cursor_;
        front_packet_ = cursor_packet_;
        if (last && !timed_) {
            timed_ = {psn, now};  // of a READ: the first response
        }
    }
    if (!reliable_) {
        return forget_sent(last);
    }
    if (!timers_.is_armed(Timer::Silence) && !timers_.is_armed(Timer::EarlySilence)) {
        arm(now);
    }
    return true;
}

void Requester::step() noexcept {
    const SendWqe& wqe = queue_.at(cursor_);
    const bool last = has_own_answer(wqe.opcode) || wqe.first.plus(cursor_packet_) == wqe.last;
    cursor_ += last ? 1 : 0;
    cursor_packet_ = last ? 0 : cursor_packet_ + 1;
}

// No answer will come to it.
bool Requester::forget_sent(bool whole) noexcept {
    unacknowledged_ = sent_;
    return !whole || complete_head(CompletionStatus::Success);
}

}  // namespace cairn::roce::rc
