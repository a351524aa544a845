#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <array>
#include <cstring>

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

}  // namespace

bool Forwarder::run_turn(Instant) noexcept {
    bool worked = false;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
        Lane& lane = *lanes_[i];
        worked |= config_.mode == ForwardMode::TxOnly ? transmit_only(lane)
                                                      : forward(lane, *lanes_[(i ^ 1U) < lanes_.size() ? i ^ 1U : i]);
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

// Sends the frames. Drops and counts those that the device does not take at once, as testers expect of a forwarder.
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

}  // namespace cairn::pmd
