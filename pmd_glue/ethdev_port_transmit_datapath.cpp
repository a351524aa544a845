#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/wire/icrc.hpp"
#include "pmd_glue/ethdev_port.hpp"
#include "pmd_glue/ethdev_port_layout.hpp"
#include "pmd_glue/exchange.hpp"

namespace cairn::pmd {

namespace {

struct Queue {
    std::uint16_t port_id;
    std::uint16_t number;
    std::uint16_t frames_at_once;
};

inline std::size_t give(const Queue& queue, rte_mbuf** frames, std::size_t count) noexcept {
    std::size_t sent = 0;
    std::size_t offered = 0;
    do {
        const std::size_t part = std::min<std::size_t>(count - sent, queue.frames_at_once);
        offered += part;
        sent += rte_eth_tx_burst(queue.port_id, queue.number, frames + sent, static_cast<std::uint16_t>(part));
    } while (sent == offered && sent < count);
    return sent;
}

}  // namespace

std::size_t EthdevPort::transmit_burst(std::span<port::TxPacket> packets, Instant now) noexcept {
    std::array<rte_mbuf*, kMaxBurst> frames;
    std::array<rte_mbuf*, kMaxBurst> copies;  // for other workers, since the device owns frames once they are sent
    const std::size_t count = std::min<std::size_t>(packets.size(), kMaxBurst);
    const bool alone = exchange_ == nullptr;
    std::size_t ready = 0;
    while (ready < count && prepare(packets[ready])) {
        frames[ready] = mbuf_of(packets[ready].packet);
        if (!alone) [[unlikely]] {
            copies[ready] = copy_for_members(packets[ready].packet);
        }
        ++ready;
    }
    const std::size_t sent = send(frames.data(), ready);
    for (std::size_t i = 0; !alone && i < ready; ++i) {
        if (copies[i] != nullptr && i < sent) {
            pass_to_members(*copies[i]);
        }
        rte_pktmbuf_free(copies[i]);
    }
    for (std::size_t i = sent; i < ready; ++i) {
        detach_tail(packets[i]);
    }
    if (sent == ready && ready < count) {
        keep_for_neighbour(packets[ready], now);
        return sent + 1;
    }
    return sent;
}

// Returns a copy of a datagram to a group with members on other workers, as it would come from the device; nullptr for
// other datagrams.
rte_mbuf* EthdevPort::copy_for_members(const port::PacketRef& packet) noexcept {
    const net::IpAddress& remote = packet.path->key().remote;
    if (!remote.is_group() || !exchange_->others_have_group(config_.worker, remote.group_mac())) {
        return nullptr;
    }
    rte_mbuf* const copy = rte_pktmbuf_copy(mbuf_of(packet), pool_, 0, UINT32_MAX);
    if (copy == nullptr) {
        counters_.count(EthdevCounter::NoBuffer);
        return nullptr;
    }
    copy->ol_flags = 0;
    const std::size_t lower = packet.path->lower_bytes();
    packet.path->write_lower_headers(rte_pktmbuf_mtod(copy, std::uint8_t*) + lower,
                                     static_cast<std::uint16_t>(copy->pkt_len - lower));
    return copy;
}

// Keeps a datagram whose next hop has not answered with its address yet. A few datagrams wait for it (RFC 1122,
// 2.3.2.2); the others are lost.
void EthdevPort::keep_for_neighbour(port::TxPacket& packet, Instant now) noexcept {
    port::Path& path = *packet.packet.path;
    if (kept_count_ == kept_.size()) {
        counters_.count(EthdevCounter::Unresolved);
        rte_pktmbuf_free(mbuf_of(packet.packet));
    } else {
        if (!packet.tail.empty()) {
            copy_tail(packet);
        }
        path.pin();
        kept_[kept_count_++] = {packet.packet, now + kKeptFor};
    }
    want(path, now);
}

// Sends the datagrams whose next hop is known by now, and drops those that waited too long.
void EthdevPort::release_kept(Instant now) noexcept {
    std::size_t left = 0;
    for (Kept& kept : std::span(kept_).first(std::exchange(kept_count_, 0))) {
        port::TxPacket packet{kept.packet, {}};
        if (!prepare(packet) && now < kept.until) {
            kept_[left++] = kept;
            continue;
        }
        kept.packet.path->unpin();
        rte_mbuf* frame = mbuf_of(kept.packet);
        const bool known = kept.packet.path->resolved();
        if (!known || send(&frame, 1) == 0) {
            counters_.count(known ? EthdevCounter::RingFull : EthdevCounter::Unresolved);
            rte_pktmbuf_free(frame);
        }
    }
    kept_count_ = left;
}

std::size_t EthdevPort::send(rte_mbuf** frames, std::size_t count) noexcept {
    std::size_t sent = 0;
    if (count == 0) {
        return 0;
    }
    if (queue_ != kNoQueue) [[likely]] {
        sent = give({port_id_, queue_, frames_at_once_}, frames, count);
    } else {
        const auto sender = static_cast<std::uint16_t>(config_.worker % device_.plan().queues);
        while (sent < count && exchange_->pass(Exchange::Lane::ToSend, config_.worker, sender, frames[sent])) {
            ++sent;
        }
    }
    counters_.count(EthdevCounter::Transmitted, sent);
    return sent;
}

// Sends frames that workers without a queue handed over. Frames that the device refuses are lost, since there is no
// sender that could send them again.
void EthdevPort::send_for_others() noexcept {
    std::array<rte_mbuf*, kMaxBurst> frames;
    const std::size_t count = exchange_->collect(Exchange::Lane::ToSend, config_.worker, frames);
    const std::size_t sent = count == 0 ? 0 : give({port_id_, queue_, frames_at_once_}, frames.data(), count);
    if (sent < count) {
        counters_.count(EthdevCounter::RingFull, count - sent);
        rte_pktmbuf_free_bulk(frames.data() + sent, static_cast<unsigned>(count - sent));
    }
}

// Writes lower headers, ICRC and mbuf. Returns false if the neighbour is not known. A packet that a full ring refused
// comes here again.
bool EthdevPort::prepare(port::TxPacket& packet) noexcept {
    port::PacketRef& head = packet.packet;
    port::Path& path = *head.path;
    if (!path.resolved()) [[unlikely]] {
        return false;
    }
    if (!packet.tail.empty()) [[unlikely]] {
        prepare_tail(packet);
    }
    rte_mbuf* frame = mbuf_of(head);
    const std::size_t lower = path.lower_bytes();
    frame->data_off = static_cast<std::uint16_t>(head.data - lower - static_cast<std::uint8_t*>(frame->buf_addr));
    if (packet.tail.empty()) [[likely]] {
        path.seal(head.data, head.len);
        frame->data_len = static_cast<std::uint16_t>(head.len + lower);
        frame->pkt_len = frame->data_len;
    } else {
        seal_with_tail(packet);
    }
    if (checksum_offload_ && path.is_v4()) {
        std::memset(head.data - lower + kEthernetBytes + 10, 0, 2);
        frame->ol_flags |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM;
        frame->l2_len = kEthernetBytes;
        frame->l3_len = 20;
    }
    return true;
}

// Attaches the payload, or copies it after the headers.
void EthdevPort::prepare_tail(port::TxPacket& packet) noexcept {
    if (!attach_tail(packet)) {
        copy_tail(packet);
    }
}

// Attaches the payload. The frame becomes: headers | tail, in place | ICRC.
bool EthdevPort::attach_tail(port::TxPacket& packet) noexcept {
    std::array<rte_mbuf*, 2> more;
    if (!gives_tails_back() || !can_send_from(packet.tail) ||
        rte_pktmbuf_alloc_bulk(pool_, more.data(), more.size()) != 0) {
        return false;
    }
    rte_mbuf* frame = mbuf_of(packet.packet);
    rte_mbuf* tail = more[0];
    rte_mbuf* trailer = more[1];
    auto* memory = const_cast<std::uint8_t*>(packet.tail.data());
    const auto bytes = static_cast<std::uint16_t>(packet.tail.size());
    rte_mbuf_ext_refcnt_update(tails_.get(), 1);
    const auto iova = reinterpret_cast<rte_iova_t>(memory);  // or no device asks for it: can_send_from()
    rte_pktmbuf_attach_extbuf(tail, memory, iova, bytes, tails_.get());
    tail->data_off = 0;
    tail->data_len = bytes;
    trailer->data_len = port::kIcrcBytes;
    frame->next = tail;
    tail->next = trailer;
    frame->nb_segs = 3;
    return true;
}

// Detaches the tail of a packet that the device refused. The packet is its sender's again, which may copy the tail or
// end the packet. A net_memif with zero-copy that has room for some of the segments only leaves references to them
// (DPDK 22.11).
void EthdevPort::detach_tail(port::TxPacket& packet) noexcept {
    rte_mbuf* frame = mbuf_of(packet.packet);
    if (frame->nb_segs != 1) {
        for (rte_mbuf* segment = frame; segment != nullptr; segment = segment->next) {
            rte_mbuf_refcnt_set(segment, 1);
        }
        rte_pktmbuf_free(frame->next);
        frame->next = nullptr;
        frame->nb_segs = 1;
    }
}

// Returns whether the device gives tails back. After a wait in vain it gets no further tails while it keeps any.
bool EthdevPort::gives_tails_back() noexcept {
    keeps_tails_ = keeps_tails_ && rte_mbuf_ext_refcnt_read(tails_.get()) != 1;
    return !keeps_tails_;
}

void EthdevPort::copy_tail(port::TxPacket& packet) noexcept {
    port::PacketRef& head = packet.packet;
    CAIRN_ASSERT(head.len + packet.tail.size() <= head.room);
    std::memcpy(head.data + head.len - port::kIcrcBytes, packet.tail.data(), packet.tail.size());
    head.len = static_cast<std::uint16_t>(head.len + packet.tail.size());
    packet.tail = {};
    counters_.count(EthdevCounter::TailCopied);
}

// Seals the packet. The room of the ICRC moves from after the headers to after the tail.
void EthdevPort::seal_with_tail(port::TxPacket& packet) noexcept {
    const port::PacketRef& head = packet.packet;
    const auto whole = static_cast<std::uint16_t>(head.len + packet.tail.size());
    const std::size_t header_bytes = head.len - std::size_t{port::kIcrcBytes};
    head.path->write_lower_headers(head.data, whole);
    const std::uint32_t headers = head.path->icrc_of_headers(port::Direction::Transmit, head.data, header_bytes, whole);
    const std::uint32_t icrc = wire::crc32(headers, packet.tail.data(), packet.tail.size());
    rte_mbuf* frame = mbuf_of(head);
    std::memcpy(rte_pktmbuf_mtod(frame->next->next, void*), &icrc, sizeof(icrc));
    frame->data_len = static_cast<std::uint16_t>(header_bytes + head.path->lower_bytes());
    frame->pkt_len = static_cast<std::uint32_t>(whole + head.path->lower_bytes());
}

std::span<std::uint8_t> EthdevPort::whole_frame(const port::PacketRef& buffer) const noexcept {
    return {rte_pktmbuf_mtod(mbuf_of(buffer), std::uint8_t*), device_.plan().frame_bytes};
}

void EthdevPort::set_frame_bytes(const port::PacketRef& buffer, std::size_t bytes) const noexcept {
    CAIRN_ASSERT(bytes <= device_.plan().frame_bytes);
    mbuf_of(buffer)->data_len = static_cast<std::uint16_t>(bytes);
    mbuf_of(buffer)->pkt_len = static_cast<std::uint32_t>(bytes);
}

std::size_t EthdevPort::send_buffers(std::span<port::PacketRef> buffers) noexcept {
    std::array<rte_mbuf*, kMaxBurst> frames;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        frames[i] = mbuf_of(buffers[i]);
    }
    const std::size_t sent = send(frames.data(), buffers.size());
    release_burst(buffers.subspan(sent));
    return sent;
}

std::size_t EthdevPort::allocate_burst(std::span<port::PacketRef> out) noexcept {
    std::array<rte_mbuf*, kMaxBurst> frames;
    const std::size_t wanted = std::min<std::size_t>(out.size(), kMaxBurst);
    if (rte_pktmbuf_alloc_bulk(pool_, frames.data(), static_cast<unsigned>(wanted)) != 0) {
        counters_.count(EthdevCounter::NoBuffer);
        return 0;
    }
    const std::size_t lower = config_.local.is_v4() ? port::Path::kLowerBytesV4 : port::Path::kLowerBytesV6;
    for (std::size_t i = 0; i < wanted; ++i) {
        out[i] = {};
        out[i].cookie = frames[i];
        out[i].data = rte_pktmbuf_mtod_offset(frames[i], std::uint8_t*, lower);
        out[i].room = static_cast<std::uint16_t>(device_.plan().data_room_bytes - lower);
    }
    return wanted;
}

}  // namespace cairn::pmd
