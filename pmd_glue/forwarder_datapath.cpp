#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>

#include "lib/roce/ud.hpp"
#include "pmd_glue/forwarder.hpp"

namespace cairn::pmd {

namespace {

void swap_macs(rte_mbuf* frame) noexcept {
    auto* bytes = rte_pktmbuf_mtod(frame, std::uint8_t*);
    std::array<std::uint8_t, 12> addresses;
    std::memcpy(addresses.data(), bytes + 6, 6);
    std::memcpy(addresses.data() + 6, bytes, 6);
    std::memcpy(bytes, addresses.data(), addresses.size());
}

// To the queue pair it came from, as from the one it went to. False: no UD SEND.
bool turn_around(port::PacketRef& packet) noexcept {
    if (!packet.icrc_ok || packet.len < sizeof(roce::RawUd) + port::kIcrcBytes) {
        return false;
    }
    auto& raw = *reinterpret_cast<roce::RawUd*>(packet.data);
    if (raw.bth.opcode != roce::kUdSendOnly && raw.bth.opcode != roce::kUdSendOnlyImmediate) {
        return false;
    }
    const std::uint32_t there = raw.source_qpn.get();
    raw.source_qpn.set(raw.bth.dest_qpn.get());
    raw.bth.dest_qpn.set(there);
    return true;
}

}  // namespace

bool Forwarder::run_turn(Instant now) noexcept {
    bool worked = false;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
        Lane& lane = *lanes_[i];
        switch (config_.mode) {
            case ForwardMode::TxOnly:
                worked |= transmit_only(lane);
                break;
            case ForwardMode::RoceEcho:
            case ForwardMode::IcmpEcho:
                worked |= echo_roce(lane, now);
                break;
            case ForwardMode::Io:
            case ForwardMode::MacSwap:
            case ForwardMode::RxOnly:
                worked |= forward(lane, *lanes_[(i ^ 1U) < lanes_.size() ? i ^ 1U : i]);
                break;
        }
    }
    return worked;
}

bool Forwarder::forward(Lane& from, Lane& to) noexcept {
    std::array<rte_mbuf*, kMaxBurst> frames;
    const std::uint16_t got = rte_eth_rx_burst(from.device->port_id(), worker_, frames.data(), config_.burst);
    if (got == 0) {
        return false;
    }
    std::uint64_t bytes = 0;
    for (std::uint16_t i = 0; i < got; ++i) {
        bytes += frames[i]->pkt_len;
        if (config_.mode == ForwardMode::MacSwap) {
            swap_macs(frames[i]);
        }
    }
    from.counters.count(ForwardCounter::RxPackets, got);
    from.counters.count(ForwardCounter::RxBytes, bytes);
    if (config_.mode == ForwardMode::RxOnly) {
        rte_pktmbuf_free_bulk(frames.data(), got);
    } else {
        send(to, frames.data(), got);
    }
    return true;
}

bool Forwarder::transmit_only(Lane& lane) noexcept {
    std::array<rte_mbuf*, kMaxBurst> frames;
    if (rte_pktmbuf_alloc_bulk(lane.device->pool(), frames.data(), config_.burst) != 0) {
        return false;
    }
    for (std::uint16_t i = 0; i < config_.burst; ++i) {
        std::memcpy(rte_pktmbuf_mtod(frames[i], void*), lane.frame.data(), lane.frame.size());
        frames[i]->data_len = static_cast<std::uint16_t>(lane.frame.size());
        frames[i]->pkt_len = frames[i]->data_len;
    }
    send(lane, frames.data(), config_.burst);
    return true;
}

// What the device does not take at once is dropped and counted, as testers expect of a forwarder.
void Forwarder::send(Lane& lane, rte_mbuf** frames, std::uint16_t count) const noexcept {
    std::array<std::uint64_t, kMaxBurst + 1> bytes_before{};
    for (std::uint16_t i = 0; i < count; ++i) {
        bytes_before[i + 1U] = bytes_before[i] + frames[i]->pkt_len;
    }
    const std::uint16_t sent = rte_eth_tx_burst(lane.device->port_id(), worker_, frames, count);
    lane.counters.count(ForwardCounter::TxPackets, sent);
    lane.counters.count(ForwardCounter::TxBytes, bytes_before[sent]);
    if (sent < count) {
        lane.counters.count(ForwardCounter::TxDropped, std::uint64_t{count} - sent);
        rte_pktmbuf_free_bulk(frames + sent, static_cast<unsigned>(count - sent));
    }
}

// The port answers ARP, neighbour solicitations and pings by itself; in icmpecho that is all.
bool Forwarder::echo_roce(Lane& lane, Instant now) noexcept {
    const std::size_t got = lane.port->receive_burst(std::span(burst_).first(config_.burst), now);
    lane.port->on_timeout(now);
    std::array<port::TxPacket, kMaxBurst> answers;
    std::size_t count = 0;
    for (port::PacketRef& packet : std::span(burst_).first(got)) {
        const std::uint64_t bytes = packet.len + packet.path->lower_bytes();
        lane.counters.count(ForwardCounter::RxPackets);
        lane.counters.count(ForwardCounter::RxBytes, bytes);
        if (config_.mode == ForwardMode::RoceEcho && turn_around(packet)) {
            answers[count++] = {packet, {}};
            lane.counters.count(ForwardCounter::TxBytes, bytes);
        } else {
            lane.counters.count(ForwardCounter::Ignored);
            lane.port->release_burst({&packet, 1});
        }
    }
    const std::size_t sent = lane.port->transmit_burst(std::span(answers).first(count), now);
    lane.counters.count(ForwardCounter::TxPackets, sent);
    for (std::size_t i = sent; i < count; ++i) {
        lane.counters.count(ForwardCounter::TxDropped);
        lane.port->release_burst({&answers[i].packet, 1});
    }
    return got != 0;
}

}  // namespace cairn::pmd
