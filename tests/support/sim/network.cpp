#include "tests/support/sim/network.hpp"

#include <algorithm>

#include "lib/base/assert.hpp"

namespace cairn::sim {

Network::Network(std::size_t nodes, std::uint64_t seed, Family family) : nodes_(nodes), family_(family) {
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

// 10.0.0.1 or fd00::1 is the first: the last octet tells them apart.
net::IpAddress Network::address_of(std::size_t node) const noexcept {
    if (family_ == Family::V4) {
        return net::IpAddress::from_v4(0x0a000001U + static_cast<std::uint32_t>(node));
    }
    return net::IpAddress::from_v6({0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, mac_of(node).octets[5]});
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
    const std::size_t to = node_of(frame.destination());
    capture_.add(frame.bytes, now);
    link(from, to).send(std::move(frame), now, next_serial_);
}

std::optional<Frame> Network::receive(std::size_t to, Instant now) {
    Link* first = nullptr;
    for (std::size_t from = 0; from < nodes_; ++from) {
        Link& each = link(from, to);
        if (each.empty() || each.front().arrival > now) {
            continue;
        }
        const bool earlier =
            first == nullptr || each.front().arrival < first->front().arrival ||
            (each.front().arrival == first->front().arrival && each.front().serial < first->front().serial);
        first = earlier ? &each : first;
    }
    if (first == nullptr) {
        return std::nullopt;
    }
    Flight flight = first->pop();
    for (const std::uint8_t byte : flight.frame.bytes) {
        trace_hash_ = (trace_hash_ ^ byte) * 0x100000001b3U;
    }
    trace_hash_ ^= static_cast<std::uint64_t>(flight.arrival.ns);
    if (tap_) {
        tap_(to, flight.frame);
    }
    return std::move(flight.frame);
}

Instant Network::next_arrival() const noexcept {
    Instant first = Instant::never();
    for (const Link& each : links_) {
        first = each.empty() ? first : std::min(first, each.front().arrival);
    }
    return first;
}

LinkCounters Network::totals() const noexcept {
    LinkCounters sum;
    for (const Link& each : links_) {
        sum += each.counters();
    }
    return sum;
}

}  // namespace cairn::sim
