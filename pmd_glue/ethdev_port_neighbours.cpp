// Frames that are not RoCE, and questions for MAC addresses. No datagram comes through here.
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <utility>

#include "lib/net/ethernet.hpp"
#include "pmd_glue/ethdev_port.hpp"
#include "pmd_glue/ethdev_port_layout.hpp"
#include "pmd_glue/exchange.hpp"

namespace cairn::pmd {

namespace {

// The limit of frames that one worker passes to the others, so that a flood leaves rings and time to datagrams.
constexpr std::uint32_t kSharedMost = 64;
constexpr Duration kSharedIn = milliseconds(1);
constexpr int kQuestionsMost = 32;  // questions sent in one turn
// The number of paths that follow a peer however often it moves. On many devices a restarted program has another
// address.
constexpr std::uint32_t kMovedAtOnce = 16;

}  // namespace

void EthdevPort::on_other_frame(rte_mbuf& frame, Instant now) noexcept {
    const std::span<const std::uint8_t> bytes(rte_pktmbuf_mtod(&frame, const std::uint8_t*), frame.data_len);
    const bool shared = exchange_ != nullptr;
    if (shared && fresh_ && net::is_neighbour_message(bytes)) {
        share(frame, now);
    }
    rte_mbuf* const answer = rte_pktmbuf_alloc(pool_);
    if (answer == nullptr) {
        counters_.count(EthdevCounter::NoBuffer);
    }
    const std::size_t answer_bytes =
        host_.on_frame(bytes, now, answer == nullptr ? std::span<std::uint8_t>() : room_of(*answer));
    next_ask_ = std::min(next_ask_, host_.poll_planned());
    follow_changes(now);
    if (answer != nullptr) {  // one worker answers, all learn
        send_other(answer, !shared || fresh_ ? answer_bytes : 0);
    }
}

// Shares a neighbour message, which reaches one worker but concerns all of them.
void EthdevPort::share(const rte_mbuf& frame, Instant now) noexcept {
    if (now - share_from_ >= kSharedIn) {
        share_from_ = now;
        shared_ = 0;
    }
    if (shared_ == kSharedMost) {
        counters_.count(EthdevCounter::NotShared);
        return;
    }
    ++shared_;
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
    } else if (!exchange_->pass_copy(config_.worker, worker, copy)) {
        counters_.count(EthdevCounter::RingFull);
        rte_pktmbuf_free(copy);
    }
}

void EthdevPort::on_timeout(Instant now) noexcept {
    if (now < next_ask_) {
        return;
    }
    for (int asked = 0; asked < kQuestionsMost; ++asked) {
        rte_mbuf* question = rte_pktmbuf_alloc(pool_);
        if (question == nullptr) {
            counters_.count(EthdevCounter::NoBuffer);
            next_ask_ = now + net::kAskFirst;
            return;
        }
        const std::size_t bytes = host_.poll_question(now, room_of(*question));
        send_other(question, bytes);
        if (bytes == 0) {
            break;
        }
    }
    follow_changes(now);
    settle_doubts(now);
    release_kept(now);
    plan_next_ask();
}

// Finds the MAC of a path. A peer that has sent something is answered at the address that it came from, on any port,
// without a question for it. Otherwise a flood of unknown peers would take the room of all other questions. If a peer
// is beyond a gateway, the question is for the gateway.
void EthdevPort::find_way(port::Path& path, Instant now) noexcept {
    const net::IpAddress& remote = path.key().remote;
    port::PathTable::Station& station = *paths_.station(remote);
    if (station.named) {
        resolve(path, station.mac);
    } else if (const auto mac = host_.known(remote)) {
        follow(station, mac, now);
    } else if (station.seen_at && host_.next_hop(remote) == remote) {
        resolve(path, *station.seen_at);
    } else {
        want(path, now);
    }
}

void EthdevPort::follow_changes(Instant now) noexcept {
    if (const auto name = host_.poll_name()) {
        follow_name(*name, now);
    }
    while (const auto change = host_.poll_change()) {
        const auto follow_hop = [&](port::PathTable::Station& station) {
            if (host_.next_hop(station.address) == change->address) {
                follow(station, change->mac, now);
            }
        };
        if (config_.gateway == change->address) {
            paths_.for_each_station(follow_hop);
        } else if (auto* const station = paths_.station(change->address); station != nullptr) {
            follow_hop(*station);
        }
        if (kept_count_ != 0) {
            release_kept(now);
        }
    }
}

// Follows a peer that announced itself without a question. If there are many paths, they follow only a peer that did
// not move a moment ago.
void EthdevPort::follow_name(const net::Host::Name& name, Instant now) noexcept {
    auto* const station = paths_.station(name.address);
    if (station == nullptr || host_.next_hop(name.address) != name.address) {
        return;
    }
    const bool costly = station->paths > kMovedAtOnce && now - station->named_at < net::kChangeLeast;
    if (station->named && (station->mac == name.mac || costly)) {
        return;
    }
    follow(*station, name.mac, now);
    if (kept_count_ != 0) {
        release_kept(now);
    }
}

// Takes in a datagram from an unexpected Ethernet address. That address shows the way to its sender only if the sender
// is beyond a router: the router's address may have changed. A peer on the link gets a question and answers for itself.
void EthdevPort::doubt(port::Path& path, const net::MacAddress& from, Instant now) noexcept {
    const net::IpAddress& remote = path.key().remote;
    const auto* const station = paths_.station(remote);
    if (station == nullptr || station->named || host_.next_hop(remote) != remote || doubts_count_ == kDoubts) {
        return;
    }
    const auto known = std::span(doubts_).first(doubts_count_);
    const auto same =
        std::find_if(known.begin(), known.end(), [&](const Doubt& each) { return each.remote == remote; });
    if (same != known.end()) {
        same->from = from;
        return;
    }
    doubts_[doubts_count_++] = {remote, from};
    if (!host_.is_beyond(remote)) {
        (void)host_.resolve(remote, now);
    }
    plan_next_ask();
    next_ask_ = std::min(next_ask_, now + net::kAskFirst);
}

// Settles doubts: if no station on the link answers for the address, its paths go to the address that its datagrams
// come from.
void EthdevPort::settle_doubts(Instant now) noexcept {
    std::size_t left = 0;
    for (const Doubt& doubt : std::span(doubts_).first(std::exchange(doubts_count_, 0))) {
        auto* const station = paths_.station(doubt.remote);
        if (station == nullptr || station->named) {
            continue;
        }
        if (!host_.is_beyond(doubt.remote)) {
            doubts_[left++] = doubt;
        } else if (now - station->named_at >= net::kChangeLeast) {
            station->named_at = now;
            station->seen_at = doubt.from;
            paths_.for_each_to(*station, [&](port::Path& path) { resolve(path, doubt.from); });
        }
    }
    doubts_count_ = left;
}

// Makes all paths of the station follow its next hop.
void EthdevPort::follow(port::PathTable::Station& station, const std::optional<net::MacAddress>& mac,
                        Instant now) noexcept {
    station.named = mac.has_value();
    station.mac = mac.value_or(net::MacAddress{});
    station.seen_at.reset();
    station.named_at = now;
    paths_.for_each_to(station, [&](port::Path& path) {
        if (mac) {
            resolve(path, *mac);
        } else {
            path.unresolve();
        }
    });
}

// Sets the path's addresses. Datagrams to a group come to the group's Ethernet address.
void EthdevPort::resolve(port::Path& path, const net::MacAddress& remote) const noexcept {
    const net::IpAddress& local = path.key().local;
    path.resolve(local.is_group() ? local.group_mac() : device_.mac(), remote);
}

// Asks for a MAC that a sender needs, again if need be.
void EthdevPort::want(const port::Path& path, Instant now) noexcept {
    (void)host_.resolve(path.key().remote, now);
    plan_next_ask();
}

void EthdevPort::plan_next_ask() noexcept {
    next_ask_ = std::min(host_.next_deadline(), kept_count_ != 0 ? kept_[0].until : Instant::never());
}

std::span<std::uint8_t> EthdevPort::room_of(rte_mbuf& buffer) const noexcept {
    return {rte_pktmbuf_mtod(&buffer, std::uint8_t*), device_.plan().frame_bytes};
}

void EthdevPort::send_other(rte_mbuf* frame, std::size_t bytes) noexcept {
    frame->data_len = static_cast<std::uint16_t>(bytes);
    frame->pkt_len = frame->data_len;
    if (bytes == 0 || send(&frame, 1) == 0) {
        rte_pktmbuf_free(frame);
    }
}

}  // namespace cairn::pmd
