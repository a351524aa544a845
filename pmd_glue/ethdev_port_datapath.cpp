#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>

#include "pmd_glue/ethdev_port.hpp"

namespace cairn::pmd {

namespace {

constexpr std::size_t kEthernet = port::Path::kEthernetBytes;
constexpr std::size_t kArpFrame = kEthernet + 28;
constexpr std::uint16_t kArpRequest = 1;
constexpr std::uint16_t kArpReply = 2;

std::uint16_t get16(const std::uint8_t* at) noexcept {
    return static_cast<std::uint16_t>((at[0] << 8U) | at[1]);
}
std::uint32_t get32(const std::uint8_t* at) noexcept {
    return (std::uint32_t{get16(at)} << 16U) | get16(at + 2);
}
void put16(std::uint8_t* at, std::uint32_t value) noexcept {
    at[0] = static_cast<std::uint8_t>(value >> 8U);
    at[1] = static_cast<std::uint8_t>(value);
}
void put32(std::uint8_t* at, std::uint32_t value) noexcept {
    put16(at, value >> 16U);
    put16(at + 2, value);
}

rte_mbuf* mbuf_of(const port::PacketRef& packet) noexcept {
    return static_cast<rte_mbuf*>(packet.cookie);
}

bool is_roce(const std::uint8_t* frame, std::size_t frame_bytes) noexcept {
    const bool v4 = frame_bytes > port::Path::kLowerBytesV4 && get16(frame + 12) == 0x0800 &&
                    frame[kEthernet + 9] == 17 && get16(frame + kEthernet + 22) == 4791;
    const bool v6 = frame_bytes > port::Path::kLowerBytesV6 && get16(frame + 12) == 0x86dd &&
                    frame[kEthernet + 6] == 17 && get16(frame + kEthernet + 42) == 4791;
    return v4 || v6;
}

}  // namespace

std::size_t EthdevPort::receive_burst(std::span<port::PacketRef> out, Instant now) noexcept {
    std::array<rte_mbuf*, kMaxBurst> mbufs;
    const auto wanted = static_cast<std::uint16_t>(std::min<std::size_t>(out.size(), config_.burst));
    const std::uint16_t got = rte_eth_rx_burst(config_.port_id, 0, mbufs.data(), wanted);
    std::size_t accepted = 0;
    for (std::uint16_t i = 0; i < got; ++i) {
        if (accept(mbufs[i], out[accepted], now)) {
            ++accepted;
        } else {
            rte_pktmbuf_free(mbufs[i]);
        }
    }
    verify(out.first(accepted));
    counters_.received += accepted;
    return accepted;
}

bool EthdevPort::accept(rte_mbuf* mbuf, port::PacketRef& out, Instant now) noexcept {
    const auto* frame = rte_pktmbuf_mtod(mbuf, std::uint8_t*);
    const std::size_t frame_bytes = mbuf->data_len;
    if (mbuf->nb_segs != 1 || !is_roce(frame, frame_bytes)) {
        on_arp(frame, frame_bytes, now);
        return false;
    }
    port::Path* path = path_of(frame, frame_bytes);
    if (path == nullptr) {
        return false;
    }
    const std::size_t lower = path->lower_bytes();
    out.data = rte_pktmbuf_mtod_offset(mbuf, std::uint8_t*, lower);
    out.path = path;
    out.cookie = mbuf;
    out.len = static_cast<std::uint16_t>(get16(frame + lower - 4) - 8U);
    out.room = static_cast<std::uint16_t>(data_room_bytes_ - lower);
    out.ip_id = 0;
    out.ecn = static_cast<std::uint8_t>((path->is_v4() ? frame[kEthernet + 1] : frame[kEthernet + 1] >> 4U) & 3U);
    return true;
}

port::Path* EthdevPort::path_of(const std::uint8_t* frame, std::size_t frame_bytes) noexcept {
    const bool v4 = frame[12] == 0x08;
    const std::uint8_t* ip = frame + kEthernet;
    const std::uint8_t* source = v4 ? ip + 12 : ip + 8;
    const std::uint16_t udp_source_port = get16(ip + (v4 ? 20 : 40));
    const std::uint32_t hash = get32(v4 ? source : source + 12) ^ udp_source_port;
    port::Path*& cached = path_cache_[hash % kPathCache];
    if (cached != nullptr && cached->is_v4() == v4 && cached->matches_received(frame, frame_bytes)) [[likely]] {
        return cached;
    }
    port::PathKey key;
    key.local = config_.local;
    key.udp_source_port = udp_source_port;
    if (v4) {
        key.remote = net::IpAddress::from_v4(get32(source));
    } else {
        std::array<std::uint8_t, 16> octets;
        std::memcpy(octets.data(), source, octets.size());
        key.remote = net::IpAddress::from_v6(octets);
    }
    if (key.remote.is_v4() != key.local.is_v4()) {
        ++counters_.bad_frame;
        return nullptr;
    }
    port::Path* path = paths_.intern(key);
    if (path == nullptr) {
        ++counters_.no_path;
        return nullptr;
    }
    if (!path->resolved()) {  // whoever sends to us can be answered where the frame came from
        net::MacAddress from;
        std::memcpy(from.octets.data(), frame + 6, from.octets.size());
        path->resolve(mac_, from);
    }
    if (!path->matches_received(frame, frame_bytes)) {
        ++counters_.bad_frame;
        return nullptr;
    }
    cached = path;
    return path;
}

// Second pass: the CRC chains of the burst's packets overlap.
void EthdevPort::verify(std::span<port::PacketRef> packets) noexcept {
    constexpr std::uint16_t kLeast = 12 + port::kIcrcBytes;
    for (port::PacketRef& packet : packets) {
        std::uint32_t carried = 0;
        packet.icrc_ok = false;
        if (packet.len >= kLeast) {
            std::memcpy(&carried, packet.data + packet.len - port::kIcrcBytes, sizeof(carried));
            packet.icrc_ok = packet.path->icrc(port::Direction::Receive, packet.data, packet.len) == carried;
        }
        counters_.bad_icrc += packet.icrc_ok ? 0U : 1U;
    }
}

std::size_t EthdevPort::transmit_burst(std::span<port::TxPacket> packets, Instant) noexcept {
    std::array<rte_mbuf*, kMaxBurst> mbufs;
    const std::size_t count = std::min<std::size_t>(packets.size(), kMaxBurst);
    std::size_t ready = 0;
    for (; ready < count && packets[ready].packet.path->resolved(); ++ready) {
        const port::PacketRef& packet = packets[ready].packet;
        rte_mbuf* mbuf = mbuf_of(packet);
        const std::size_t lower = packet.path->lower_bytes();
        packet.path->write_lower_headers(packet.data, packet.len);
        mbuf->data_off = static_cast<std::uint16_t>(packet.data - lower - static_cast<std::uint8_t*>(mbuf->buf_addr));
        mbuf->data_len = static_cast<std::uint16_t>(packet.len + lower);
        mbuf->pkt_len = mbuf->data_len;
        mbufs[ready] = mbuf;
    }
    for (std::size_t i = 0; i < ready; ++i) {
        const port::PacketRef& packet = packets[i].packet;
        const std::uint32_t icrc = packet.path->icrc(port::Direction::Transmit, packet.data, packet.len);
        std::memcpy(packet.data + packet.len - port::kIcrcBytes, &icrc, sizeof(icrc));
    }
    const std::size_t sent =
        ready == 0 ? 0 : rte_eth_tx_burst(config_.port_id, 0, mbufs.data(), static_cast<std::uint16_t>(ready));
    counters_.transmitted += sent;
    if (sent == ready && ready < count) {  // the next one has no neighbour yet: one more lost datagram
        ++counters_.unresolved;
        rte_pktmbuf_free(mbuf_of(packets[ready].packet));
        return sent + 1;
    }
    return sent;
}

std::size_t EthdevPort::allocate_burst(std::span<port::PacketRef> out) noexcept {
    std::array<rte_mbuf*, kMaxBurst> mbufs;
    const std::size_t wanted = std::min<std::size_t>(out.size(), kMaxBurst);
    if (rte_pktmbuf_alloc_bulk(pool_, mbufs.data(), static_cast<unsigned>(wanted)) != 0) {
        ++counters_.no_buffer;
        return 0;
    }
    const std::size_t lower = config_.local.is_v4() ? port::Path::kLowerBytesV4 : port::Path::kLowerBytesV6;
    for (std::size_t i = 0; i < wanted; ++i) {
        out[i] = {};
        out[i].data = rte_pktmbuf_mtod_offset(mbufs[i], std::uint8_t*, lower);
        out[i].cookie = mbufs[i];
        out[i].room = static_cast<std::uint16_t>(data_room_bytes_ - lower);
    }
    return wanted;
}

void EthdevPort::release_burst(std::span<port::PacketRef> packets) noexcept {
    std::array<rte_mbuf*, kMaxBurst> mbufs;
    unsigned count = 0;
    for (const port::PacketRef& packet : packets) {
        if (packet.cookie == nullptr) {
            continue;
        }
        mbufs[count++] = mbuf_of(packet);
        if (count == kMaxBurst) {
            rte_pktmbuf_free_bulk(mbufs.data(), count);
            count = 0;
        }
    }
    if (count != 0) {
        rte_pktmbuf_free_bulk(mbufs.data(), count);
    }
}

// RFC 826: answers requests for our address and learns from what is meant for us.
void EthdevPort::on_arp(const std::uint8_t* frame, std::size_t frame_bytes, Instant) noexcept {
    const std::uint8_t* arp = frame + kEthernet;
    if (frame_bytes < kArpFrame || get16(frame + 12) != 0x0806 || get16(arp) != 1 || get16(arp + 2) != 0x0800 ||
        arp[4] != 6 || arp[5] != 4 || !config_.local.is_v4() || get32(arp + 24) != config_.local.v4()) {
        ++counters_.not_roce;
        return;
    }
    net::MacAddress sender;
    std::memcpy(sender.octets.data(), arp + 8, sender.octets.size());
    const std::uint32_t sender_ip = get32(arp + 14);
    learn(net::IpAddress::from_v4(sender_ip), sender);
    if (get16(arp + 6) == kArpRequest) {
        send_arp(kArpReply, sender, sender_ip);
    }
}

void EthdevPort::send_arp(std::uint16_t operation, const net::MacAddress& to, std::uint32_t target_ip) noexcept {
    rte_mbuf* mbuf = rte_pktmbuf_alloc(pool_);
    if (mbuf == nullptr) {
        ++counters_.no_buffer;
        return;
    }
    auto* frame = rte_pktmbuf_mtod(mbuf, std::uint8_t*);
    std::memset(frame, 0, 60);
    std::memcpy(frame, to.octets.data(), 6);
    std::memcpy(frame + 6, mac_.octets.data(), 6);
    put16(frame + 12, 0x0806);
    std::uint8_t* arp = frame + kEthernet;
    put16(arp, 1);
    put16(arp + 2, 0x0800);
    arp[4] = 6;
    arp[5] = 4;
    put16(arp + 6, operation);
    std::memcpy(arp + 8, mac_.octets.data(), 6);
    put32(arp + 14, config_.local.v4());
    if (operation == kArpReply) {
        std::memcpy(arp + 18, to.octets.data(), 6);
    }
    put32(arp + 24, target_ip);
    mbuf->data_len = 60;
    mbuf->pkt_len = 60;
    if (rte_eth_tx_burst(config_.port_id, 0, &mbuf, 1) == 0) {
        rte_pktmbuf_free(mbuf);
    }
}

}  // namespace cairn::pmd
