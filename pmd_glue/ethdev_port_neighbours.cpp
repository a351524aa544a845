// What arrives beside RoCE, and whom to ask for a MAC address. Not on the way of a datagram.
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <array>
#include <cstring>

#include "lib/net/arp.hpp"
#include "lib/net/ethernet.hpp"
#include "pmd_glue/ethdev_port.hpp"
#include "pmd_glue/ethdev_port_layout.hpp"
#include "pmd_glue/exchange.hpp"

namespace cairn::pmd {

namespace {

constexpr std::uint16_t kLeastFrameBytes = 60;

}  // namespace

// Neighbour discovery reaches one worker; the others want to know too.
void EthdevPort::on_other_frame(rte_mbuf& frame, Instant) noexcept {
    const std::span<const std::uint8_t> bytes(rte_pktmbuf_mtod(&frame, const std::uint8_t*), frame.data_len);
    const auto ethernet = net::EthernetHeader::parse(bytes);
    if (!ethernet.ok() || ethernet.value().type != net::kEtherTypeArp) {
        return;
    }
    if (exchange_ != nullptr && fresh_) {
        share(frame);
    }
    on_arp(bytes.data(), bytes.size());
}

void EthdevPort::share(const rte_mbuf& frame) noexcept {
    for (std::uint16_t worker = 0; worker < exchange_->workers(); ++worker) {
        if (worker == config_.worker) {
            continue;
        }
        rte_mbuf* copy = rte_pktmbuf_copy(&frame, pool_, 0, UINT32_MAX);
        if (copy == nullptr) {
            counters_.count(EthdevCounter::NoBuffer);
        } else if (!exchange_->pass(Exchange::Lane::Received, config_.worker, worker, copy)) {
            counters_.count(EthdevCounter::RingFull);
            rte_pktmbuf_free(copy);
        }
    }
}

// RFC 826: answers requests for our address and learns from what is meant for us.
void EthdevPort::on_arp(const std::uint8_t* frame, std::size_t frame_bytes) noexcept {
    const auto parsed = net::ArpMessage::parse({frame + kEthernetBytes, frame_bytes - kEthernetBytes});
    if (!parsed.ok() || parsed.value().target_ip != config_.local) {
        return;
    }
    const net::ArpMessage& arp = parsed.value();
    learn(arp.sender_ip, arp.sender_mac);
    if (arp.operation == net::ArpOperation::Request && (exchange_ == nullptr || fresh_)) {
        send_arp(net::ArpOperation::Reply, arp.sender_mac, arp.sender_ip);
    }
}

void EthdevPort::send_arp(net::ArpOperation operation, const net::MacAddress& to,
                          const net::IpAddress& target) noexcept {
    rte_mbuf* mbuf = rte_pktmbuf_alloc(pool_);
    if (mbuf == nullptr) {
        counters_.count(EthdevCounter::NoBuffer);
        return;
    }
    auto* frame = rte_pktmbuf_mtod(mbuf, std::uint8_t*);
    std::memset(frame, 0, kLeastFrameBytes);
    net::ArpMessage arp;
    arp.operation = operation;
    arp.sender_mac = device_.mac();
    arp.sender_ip = config_.local;
    arp.target_mac = operation == net::ArpOperation::Reply ? to : net::MacAddress{};
    arp.target_ip = target;
    net::emit_at(frame, net::EthernetHeader{to, device_.mac(), net::kEtherTypeArp});
    net::emit_at(frame + kEthernetBytes, arp);
    mbuf->data_len = kLeastFrameBytes;
    mbuf->pkt_len = kLeastFrameBytes;
    if (send(&mbuf, 1) == 0) {
        rte_pktmbuf_free(mbuf);
    }
}

void EthdevPort::on_timeout(Instant now) noexcept {
    if (now < next_ask_) {
        return;
    }
    next_ask_ = Instant::never();
    for (const Neighbour& neighbour : neighbours_) {
        if (!neighbour.known && neighbour.address.is_v4()) {
            send_arp(net::ArpOperation::Request, net::kBroadcastMac, neighbour.address);
            next_ask_ = now + milliseconds(100);
        }
    }
}

// Whoever names itself to us may be a new station at an old address.
void EthdevPort::learn(const net::IpAddress& address, const net::MacAddress& mac) noexcept {
    for (Neighbour& neighbour : neighbours_) {
        if (neighbour.address == address) {
            neighbour.mac = mac;
            neighbour.known = true;
        }
    }
    paths_.for_each_to(address, [&](port::Path& path) { path.resolve(device_.mac(), mac); });
}

}  // namespace cairn::pmd
