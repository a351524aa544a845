#include "lib/sim/switch.hpp"

#include <algorithm>
#include <utility>

namespace cairn::sim {

namespace {

Instant at_or_after(std::int64_t ps) noexcept {
    return {(ps + kPicosecondsPerNanosecond - 1) / kPicosecondsPerNanosecond};
}

}  // namespace

Switch::Switch(const SwitchShape& shape, std::size_t nodes, std::uint64_t seed)
    : shape_(shape), random_(seed), ports_(nodes), earliest_(nodes, Instant::never()) {}

std::int64_t Switch::span_ps(const Frame& frame) const noexcept {
    return static_cast<std::int64_t>((frame.bytes.size() + kWireOverheadBytes) * kBitPicoseconds /
                                     shape_.bits_per_second);
}

void Switch::send(std::size_t from, std::size_t to, Frame frame, Instant now, std::uint64_t serial) {
    ++counters_.offered;
    std::int64_t& busy = ports_[from].uplink_busy_until_ps;
    busy = std::max(busy, now.ns * kPicosecondsPerNanosecond) + span_ps(frame);
    ingress_.push_back({{at_or_after(busy) + shape_.delay, serial, std::move(frame)}, to});
    std::push_heap(ingress_.begin(), ingress_.end(), later);
}

void Switch::advance(Instant now) {
    while (next_ingress() <= now) {
        std::pop_heap(ingress_.begin(), ingress_.end(), later);
        Ingress first = std::move(ingress_.back());
        ingress_.pop_back();
        admit(std::move(first));
    }
}

// Frees the room of frames that have left the buffer.
void Switch::drain(std::int64_t now_ps) {
    while (!departures_.empty() && departures_.top().when_ps <= now_ps) {
        const Departure& gone = departures_.top();
        used_bytes_ -= gone.bytes;
        ports_[gone.port].queued_bytes -= gone.bytes;
        departures_.pop();
    }
}

bool Switch::marks(std::uint64_t waiting) noexcept {
    if (shape_.ecn_high_bytes == 0 || waiting <= shape_.ecn_low_bytes) {
        return false;
    }
    const std::uint64_t above = waiting - shape_.ecn_low_bytes;
    const std::uint64_t range = shape_.ecn_high_bytes - shape_.ecn_low_bytes;
    return above >= range || random_.chance(static_cast<std::uint32_t>(shape_.ecn_most_per_million * above / range));
}

void Switch::admit(Ingress ingress) {
    Flight& flight = ingress.flight;
    Port& port = ports_[ingress.to];
    const std::int64_t now_ps = flight.arrival.ns * kPicosecondsPerNanosecond;
    drain(now_ps);
    const std::uint64_t bytes = flight.frame.bytes.size();
    if (used_bytes_ + bytes > shape_.buffer_bytes ||
        port.queued_bytes + bytes > shape_.alpha * (shape_.buffer_bytes - used_bytes_)) {
        ++counters_.tail_dropped;
        return;
    }
    if (marks(port.queued_bytes) && flight.frame.mark_congestion()) {
        ++counters_.marked;
    }
    port.busy_until_ps = std::max(port.busy_until_ps, now_ps) + span_ps(flight.frame);
    port.queued_bytes += bytes;
    used_bytes_ += bytes;
    queued_most_ = std::max(queued_most_, port.queued_bytes);
    departures_.push({port.busy_until_ps, ingress.to, bytes});
    flight.arrival = at_or_after(port.busy_until_ps) + shape_.delay;
    port.leaving.push_back(std::move(flight));
    earliest_[ingress.to] = port.leaving.front().arrival;
}

std::optional<Flight> Switch::receive(std::size_t to, Instant now) {
    if (earliest_[to] > now || ports_[to].leaving.empty()) {
        return std::nullopt;
    }
    std::deque<Flight>& leaving = ports_[to].leaving;
    Flight first = std::move(leaving.front());
    leaving.pop_front();
    earliest_[to] = leaving.empty() ? Instant::never() : leaving.front().arrival;
    ++counters_.delivered;
    return first;
}

}  // namespace cairn::sim
