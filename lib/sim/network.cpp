#include "lib/sim/network.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/base/assert.hpp"

namespace cairn::sim {

Network::Network(std::size_t nodes, std::uint64_t seed, Family family)
    : nodes_(nodes), family_(family), earliest_(nodes, Instant::never()), queues_(nodes) {
    CAIRN_ASSERT(nodes <= kMaxNodes);
    for (std::size_t i = 0; i < nodes * nodes; ++i) {
        links_.emplace_back(split_mix(seed));
    }
}

void Network::set_faults(const LinkFaults& faults, const LinkShape& shape) noexcept {
    for (Link& each : links_) {
        each.set_faults(faults);
        each.set_shape(shape);
    }
}

// Returns 10.0.0.1 or fd00::1 for the first node. Addresses differ in the last octet.
net::IpAddress Network::address_of(std::size_t node) const noexcept {
    if (family_ == Family::V4) {
        return net::IpAddress::from_v4(0x0a000001U + static_cast<std::uint32_t>(node));
    }
    const std::uint8_t last = mac_of(node).octets[5];
    return net::IpAddress::from_v6({0xfd, 0, 0, 0, 0, 0, 0, last, 0, 0, 0, 0, 0, 0, 0, last});  // a network of its own
}

net::IpAddress Network::group_address(std::uint8_t number) const noexcept {
    if (family_ == Family::V4) {
        return net::IpAddress::from_v4(0xef010200U + number);
    }
    return net::IpAddress::from_v6({0xff, 0x15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number});
}

std::size_t Network::node_of(const net::IpAddress& address) const noexcept {
    const std::size_t node = std::size_t{address.octets()[15]} - 1;
    CAIRN_ASSERT(node < nodes_ && address_of(node) == address);
    return node;
}

net::MacAddress Network::mac_of(std::size_t node) noexcept {
    return {{2, 0, 0, 0, 0, static_cast<std::uint8_t>(node + 1)}};
}

void Network::send(std::size_t from, Frame frame, Instant now) {
    capture_.add(frame.bytes, now);
    if (frame.destination().is_group()) {
        CAIRN_ASSERT(switch_ == nullptr);
        for (std::size_t to = 0; to < nodes_; ++to) {
            send_over_link(from, to, frame, now);
        }
        return;
    }
    const std::size_t to = node_of(frame.destination());
    if (switch_ != nullptr) {
        switch_->send(from, to, std::move(frame), now, next_serial_++);
        return;
    }
    send_over_link(from, to, std::move(frame), now);
}

void Network::send_over_link(std::size_t from, std::size_t to, Frame frame, Instant now) {
    Link& taken = link(from, to);
    if (witness_) {
        taken.send(std::move(frame), now, next_serial_, [&](const Frame& seen, Fate fate, Instant arrival) {
            witness_({from, to, now, arrival, fate}, seen);
        });
    } else {
        taken.send(std::move(frame), now, next_serial_);
    }
    if (!taken.empty()) {
        earliest_[to] = std::min(earliest_[to], taken.front().arrival);
    }
}

void Network::set_queues(std::size_t node, std::uint32_t queues) {
    queues_[node].owners = port::QpnOwners(queues);
    queues_[node].arrived.resize(queues > 1 ? queues : 0);
}

void Network::advance(Instant now) {
    if (switch_ != nullptr) {
        switch_->advance(now);
    }
    for (std::size_t to = 0; to < nodes_; ++to) {
        while (has_queues(to) && next_arrival(to) <= now) {
            std::optional<Flight> flight = take(to, now);
            if (!flight) {
                break;
            }
            steer(queues_[to], std::move(*flight));
        }
    }
}

void Network::steer(Queues& queues, Flight flight) {
    if (flight.frame.destination().is_group()) {
        for (std::deque<Flight>& each : queues.arrived) {
            each.push_back(flight);
        }
    } else {
        queues.arrived[queues.owners.of(flight.frame.dest_qpn())].push_back(std::move(flight));
    }
}

Instant Network::next_arrival(std::size_t to, std::size_t queue) const noexcept {
    if (!has_queues(to)) {
        return next_arrival(to);
    }
    const std::deque<Flight>& arrived = queues_[to].arrived[queue];
    return arrived.empty() ? Instant::never() : arrived.front().arrival;
}

std::optional<Frame> Network::receive(std::size_t to, Instant now, std::size_t queue) {
    if (!has_queues(to)) {
        std::optional<Flight> flight = take(to, now);
        return flight ? deliver(to, std::move(*flight)) : std::nullopt;
    }
    if (next_arrival(to, queue) > now) {
        return std::nullopt;
    }
    std::deque<Flight>& arrived = queues_[to].arrived[queue];
    Flight flight = std::move(arrived.front());
    arrived.pop_front();
    return deliver(to, std::move(flight));
}

std::optional<Flight> Network::take(std::size_t to, Instant now) {
    if (switch_ != nullptr) {
        return switch_->receive(to, now);
    }
    if (earliest_[to] > now) {
        return std::nullopt;
    }
    Link* first = nullptr;
    for (std::size_t from = 0; from < nodes_; ++from) {
        Link& each = link(from, to);
        if (!each.empty() && (first == nullptr || each.front().before(first->front()))) {
            first = &each;
        }
    }
    if (first == nullptr) {  // a call at the end of time, when no frame is under way
        return std::nullopt;
    }
    Flight flight = first->pop();
    earliest_[to] = Instant::never();
    for (std::size_t from = 0; from < nodes_; ++from) {
        const Link& each = link(from, to);
        earliest_[to] = each.empty() ? earliest_[to] : std::min(earliest_[to], each.front().arrival);
    }
    return flight;
}

std::optional<Frame> Network::deliver(std::size_t to, Flight flight) {
    hash(flight);
    if (tap_) {
        tap_(to, flight.frame);
    }
    return std::move(flight.frame);
}

// Adds the frame to the hash: FNV-1a by words instead of bytes, in independent lanes. Of a long frame it takes the
// headers and the end, where the ICRC covers all bytes between.
void Network::hash(const Flight& flight) noexcept {
    using Words = std::array<std::uint64_t, 4>;
    constexpr std::size_t kHashedBytes = 4 * sizeof(Words);
    const auto mixed = [](std::uint64_t hash, std::uint64_t word) {
        hash = (hash ^ word) * 0x100000001b3U;
        return hash ^ (hash >> 32U);
    };
    const std::span<const std::uint8_t> bytes = flight.frame.bytes;
    Words lanes{1, 2, 3, 4};
    const std::size_t skipped_to = std::max(kHashedBytes, bytes.size() - std::min(bytes.size(), sizeof(Words)));
    for (std::size_t at = 0; at < bytes.size();
         at = at + sizeof(Words) == kHashedBytes ? skipped_to : at + sizeof(Words)) {
        Words words{};
        std::memcpy(words.data(), bytes.data() + at, std::min(sizeof(words), bytes.size() - at));
        for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
            lanes[lane] = mixed(lanes[lane], words[lane]);
        }
    }
    for (const std::uint64_t lane : lanes) {
        trace_hash_ = mixed(trace_hash_, lane);
    }
    trace_hash_ = mixed(trace_hash_, static_cast<std::uint64_t>(flight.arrival.ns));
}

Instant Network::next_arrival() const noexcept {
    if (switch_ != nullptr) {
        return switch_->next_event();
    }
    return *std::min_element(earliest_.begin(), earliest_.end());
}

LinkCounters Network::totals() const noexcept {
    LinkCounters sum = switch_ != nullptr ? switch_->counters() : LinkCounters{};
    for (const Link& each : links_) {
        sum += each.counters();
    }
    return sum;
}

}  // namespace cairn::sim
