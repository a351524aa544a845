// Makes datagrams from work requests, and puts received ones into receive requests.
#include <array>
#include <cstring>

#include "lib/base/copy.hpp"
#include "lib/roce/qp/scatter.hpp"
#include "lib/roce/ud/queue_pair.hpp"

namespace cairn::roce {

namespace {

constexpr std::uint32_t kOwnQkey = 0x80000000U;
constexpr std::uint8_t kSolicited = 0x80;

// Returns the IP header of the datagram as a GRH: an IPv4 header in the last 20 of its 40 bytes (annex A17, A17.4.5.1).
std::array<std::uint8_t, kGrhBytes> grh_of(const port::PacketRef& packet) noexcept {
    std::array<std::uint8_t, port::Path::kLowerBytesV6> lower{};
    std::array<std::uint8_t, kGrhBytes> grh{};
    const bool is_ours = packet.path->key().remote.is_group();  // on its way out
    packet.path->describe_lower_headers(is_ours ? port::Direction::Transmit : port::Direction::Receive, lower.data(),
                                        packet.len, packet.ip_id, packet.ecn);
    const std::size_t ip_bytes = packet.path->is_v4() ? 20 : 40;
    std::memcpy(grh.data() + grh.size() - ip_bytes, lower.data() + port::Path::kEthernetBytes, ip_bytes);
    return grh;
}

}  // namespace

PostVerdict UdQueuePair::judge_kind(const SendRequest& work) const noexcept {
    if (!core_.may().send && !core_.may().flush) {
        return PostVerdict::WrongState;
    }
    if (!has_work(wire::Service::Ud, work.opcode)) {
        return PostVerdict::BadOpcode;
    }
    std::uint64_t bytes = work.is_inline ? work.inline_bytes.size() : 0;
    for (const Sge& sge : work.is_inline ? std::span<const Sge>{} : work.sges) {
        bytes += sge.bytes;
    }
    return bytes > path_mtu_bytes() ? PostVerdict::TooLong : PostVerdict::Posted;
}

PostVerdict UdQueuePair::judge_send(const SendRequest& work) const noexcept {
    const PostVerdict verdict = judge_kind(work);
    return verdict == PostVerdict::Posted ? sends_.judge(work) : verdict;
}

PostVerdict UdQueuePair::post_send(const UdRequest& request) noexcept {
    PostVerdict verdict = judge_kind(request.work);
    if (verdict != PostVerdict::Posted) {
        return verdict;
    }
    UdAddress& to = destinations_[sends_.tail() & (destinations_.size() - 1)];
    verdict = sends_.post(request.work);
    if (verdict != PostVerdict::Posted) {
        return verdict;
    }
    to = request.to;
    to.qkey = (to.qkey.value & kOwnQkey) != 0 ? attributes().qkey : to.qkey;
    to.path->pin();
    if (core_.may().flush) {
        flush_sends();
    }
    return verdict;
}

PostVerdict UdQueuePair::post_receive(const ReceiveRequest& request) noexcept {
    return core_.post_receive(request);
}

bool UdQueuePair::transmit(std::size_t most, Instant now) noexcept {
    for (; state() == QpState::Rts && !sends_.empty(); --most) {
        const port::PacketRef buffer = most == 0 ? port::PacketRef{} : sender_.take();
        if (buffer.cookie == nullptr) {
            return true;
        }
        const std::size_t bytes = make_packet(sends_.at(sends_.head()), buffer);
        if (bytes == 0) {
            sender_.give_back(buffer);
            core_.enter(QpState::Sqe);
            complete_head(CompletionStatus::LocalProtection);
            flush_sends();
            return false;
        }
        // The request is completed before its packet leaves. If the packet comes back from a group, its effects may end
        // the queue pair.
        port::Path* const path = destination_of_head().path;
        complete_head(CompletionStatus::Success);
        if (path->key().remote.is_group()) {
            port::PacketRef packet = buffer;
            packet.path = path;
            packet.len = static_cast<std::uint16_t>(bytes);
            datagrams_.loop_back(packet, now);
        }
        sender_.send(buffer, path, bytes, {}, now);
    }
    return false;
}

// Returns the packet's bytes; 0 if an SGE is not allowed, or its memory is not there any more.
std::size_t UdQueuePair::make_packet(SendWqe& wqe, const port::PacketRef& buffer) noexcept {
    Pieces payload;
    if (wqe.flags.is_inline) {
        payload.at[payload.count++] = sends_.inline_at(sends_.head());
    } else if (!find_pieces({core_.resources().memory, core_.pd(), {}}, sends_.pieces_at(sends_.head()), 0, wqe.bytes,
                            payload)) {
        return 0;
    }
    wire::UdHeader said = qp_->header_to(destination_of_head());
    said.psn = qp_->next_psn();
    said.solicited = wqe.flags.solicited;
    said.has_immediate = wqe.opcode == WorkOpcode::SendWithImmediate;
    const wire::RawUd header = said.raw(wqe.bytes);
    std::memcpy(buffer.data, &header, sizeof(header));
    std::uint8_t* at = buffer.data + sizeof(header);
    if (said.has_immediate) {
        const Be32 immediate{wqe.immediate};
        std::memcpy(at, &immediate, sizeof(immediate));
        at += sizeof(immediate);
    }
    if (!gather(payload, at)) {
        return 0;
    }
    at += wqe.bytes;
    const std::uint32_t pad = wire::pad_for(wqe.bytes);
    std::memset(at, 0, pad);
    return static_cast<std::size_t>(at - buffer.data) + pad + port::kIcrcBytes;
}

void UdQueuePair::complete_head(CompletionStatus status) noexcept {
    const SendWqe& wqe = sends_.at(sends_.head());
    Completion completion{wqe.wr_id, status, CompletionOpcode::Send};
    completion.qpn = qpn();
    const bool wanted = wqe.flags.signalled || status != CompletionStatus::Success;
    destination_of_head().path->unpin();
    sends_.pop();
    completion.behind = sends_.head();
    completion.sends = &sends_;
    if (wanted && !core_.resources().send_completions.push(completion)) {
        fail(QpEvent::CqOverrun);
    }
}

void UdQueuePair::flush_sends() noexcept {
    while (!sends_.empty()) {
        complete_head(CompletionStatus::Flushed);
    }
}

void UdQueuePair::on_datagrams(std::span<const UdDatagram> datagrams, Instant) noexcept {
    for (const UdDatagram& datagram : datagrams) {
        if (const std::optional<Drop> reason = judge(datagram)) {
            datagrams_.drop(*reason);
        } else {
            take(datagram);
        }
    }
}

std::optional<Drop> UdQueuePair::judge(const UdDatagram& datagram) noexcept {
    if (!core_.may().receive) {
        return Drop::WrongState;
    }
    const ReceiveQueue& queue = core_.receives();
    if (queue.empty()) {
        return Drop::NoReceive;
    }
    const bool fits = kGrhBytes + std::uint64_t{datagram.payload_bytes} <= queue.front().bytes;
    return fits ? std::nullopt : std::optional(Drop::ReceiveTooShort);
}

void UdQueuePair::take(const UdDatagram& datagram) noexcept {
    UnsetArray<Sge, kMaxSges> many;
    ReceiveWqe wqe;
    wqe.many = many.data();
    core_.receives().take(wqe);
    if (!place_datagram(datagram, wqe.pieces())) {
        core_.complete_receive(wqe.head.wr_id, CompletionStatus::LocalProtection);
        enter_error();
        return;
    }
    Completion completion{wqe.head.wr_id, CompletionStatus::Success, CompletionOpcode::Receive};
    completion.solicited = (datagram.packet->data[1] & kSolicited) != 0;
    completion.has_immediate = datagram.has_immediate;
    completion.immediate = datagram.immediate;
    completion.has_grh = true;
    completion.qpn = qpn();
    completion.bytes = kGrhBytes + datagram.payload_bytes;
    completion.source_qpn = datagram.source_qpn;
    if (!core_.resources().receive_completions.push(completion)) {
        fail(QpEvent::CqOverrun);
    }
}

bool UdQueuePair::place_datagram(const UdDatagram& datagram, std::span<const Sge> sges) const noexcept {
    const MemoryAccess access{core_.resources().memory, core_.pd(), Right::LocalWrite};
    Pieces front;
    Pieces rest;
    if (!find_pieces(access, sges, 0, kGrhBytes, front) ||
        !find_pieces(access, sges, kGrhBytes, datagram.payload_bytes, rest)) {
        return false;
    }
    return place(front, grh_of(*datagram.packet)) && place(rest, {datagram.payload, datagram.payload_bytes});
}

void UdQueuePair::fail(QpEvent why) noexcept {
    if (state() != QpState::Err) {
        core_.raise(why);
        enter_error();
    }
}

}  // namespace cairn::roce
