// What arrives beside RoCE, and whom to ask for a MAC address. Not on the way of a datagram.
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>

#include "lib/net/ethernet.hpp"
#include "pmd_glue/ethdev_port.hpp"
#include "pmd_glue/ethdev_port_layout.hpp"
#include "pmd_glue/exchange.hpp"

namespace cairn::pmd {

void EthdevPort::on_other_frame(rte_mbuf& frame, Instant now) noexcept {
    const bool shared = exchange_ != nullptr;
    if (shared && fresh_) {
        share(frame);
    }
    rte_mbuf* answer = rte_pktmbuf_alloc(pool_);
    if (answer == nullptr) {
        counters_.count(EthdevCounter::NoBuffer);
        return;
    }
    const std::span<const std::uint8_t> bytes(rte_pktmbuf_mtod(&frame, const std::uint8_t*), frame.data_len);
    const std::size_t answer_bytes = host_.on_frame(bytes, now, room_of(*answer));
    follow_changes(now);
    // One worker answers, all learn.
    send_other(answer, !shared || fresh_ ? answer_bytes : 0);
}

// Neighbour discovery reaches one worker; the others want to know too.
void EthdevPort::share(const rte_mbuf& frame) noexcept {
    for (std::uint16_t worker = 0; worker < exchange_->workers(); ++worker) {
        if (worker != config_.worker) {
            pass_copy(frame, worker);
        }
    }
}

void EthdevPort::pass_copy(const rte_mbuf& frame, std::uint16_t worker) noexcept {
    rte_mbuf* copy = rte_pktmbuf_copy(&frame, pool_, 0, UINT32_MAX);
    if (copy == nullptr) {
        counters_.count(EthdevCounter::NoBuffer);
    } else if (!exchange_->pass(Exchange::Lane::Received, config_.worker, worker, copy)) {
        counters_.count(EthdevCounter::RingFull);
        rte_pktmbuf_free(copy);
    }
}

void EthdevPort::on_timeout(Instant now) noexcept {
    if (now < next_ask_) {
        return;
    }
    for (bool more = true; more;) {
        rte_mbuf* question = rte_pktmbuf_alloc(pool_);
        if (question == nullptr) {
            counters_.count(EthdevCounter::NoBuffer);
            next_ask_ = now + net::kAskFirst;
            return;
        }
        const std::size_t bytes = host_.poll_question(now, room_of(*question));
        more = bytes != 0;
        send_other(question, bytes);
    }
    follow_changes(now);
    release_kept(now);
    plan_next_ask();
}

// Paths follow their next hop.
void EthdevPort::follow_changes(Instant now) noexcept {
    bool changed = false;
    while (const auto change = host_.poll_change()) {
        paths_.for_each([&](port::Path& path) {
            if (path.key().remote.is_group() || host_.next_hop(path.key().remote) != change->address) {
                return;
            }
            if (change->mac) {
                resolve(path, *change->mac);
            } else {
                path.unresolve();
            }
        });
        changed = true;
    }
    if (changed && kept_count_ != 0) {
        release_kept(now);
    }
}

// Datagrams to a group come by its Ethernet address.
void EthdevPort::resolve(port::Path& path, const net::MacAddress& remote) const noexcept {
    const net::IpAddress& local = path.key().local;
    path.resolve(local.is_group() ? local.group_mac() : device_.mac(), remote);
}

// Someone sends where no MAC is known: it is asked for, again if need be.
void EthdevPort::want(const port::Path& path, Instant now) noexcept {
    (void)host_.resolve(path.key().remote, now);
    plan_next_ask();
}

void EthdevPort::plan_next_ask() noexcept {
    next_ask_ = std::min(host_.next_deadline(), kept_count_ != 0 ? kept_[0].until : Instant::never());
}

std::span<std::uint8_t> EthdevPort::room_of(rte_mbuf& buffer) const noexcept {
    return {rte_pktmbuf_mtod(&buffer, std::uint8_t*), data_room_bytes_};
}

void EthdevPort::send_other(rte_mbuf* frame, std::size_t bytes) noexcept {
    frame->data_len = static_cast<std::uint16_t>(bytes);
    frame->pkt_len = frame->data_len;
    if (bytes == 0 || send(&frame, 1) == 0) {
        rte_pktmbuf_free(frame);
    }
}

}  // namespace cairn::pmd
