#include "lib/port/faulty_port.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cairn::port {

namespace {

constexpr std::size_t kMostHeld = 1024;

bool holds(const Faults& faults) noexcept {
    return faults.duplicates_per_million != 0 || faults.reorder_per_million != 0 || faults.delay.ns != 0;
}

bool happens(SecretNumbers& chances, std::uint32_t per_million) noexcept {
    return per_million != 0 && chances.next() % 1'000'000U < per_million;
}

// Flips one bit. The ICRC detects each such change.
void damage(SecretNumbers& chances, PacketRef& packet) noexcept {
    const std::uint64_t bit = chances.next() % (std::uint64_t{packet.len} * 8);
    packet.data[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    packet.icrc_ok = false;
}

}  // namespace

FaultyPort::FaultyPort(std::unique_ptr<Port> inner, const Faults& faults, Instant opened)
    : inner_(std::move(inner)),
      faults_(faults),
      opened_(opened),
      chances_({faults.seed, 0}, Purpose::InjectedFaults),
      held_(holds(faults) ? kMostHeld : 0) {}

bool FaultyPort::is_cut_off(const Path& path, Instant now) const noexcept {
    return is_down(now) || (faults_.peer == path.key().remote && faults_.peer_outage.covers(now - opened_));
}

// Returns true if the datagram is received now. Otherwise it is held or lost, and its buffer was given back. A datagram
// that was damaged on its way here may have a path that does not stay, and is not held.
bool FaultyPort::meet_fate(PacketRef& packet, Instant now) noexcept {
    const bool cut_off = is_cut_off(*packet.path, now);
    if (cut_off || happens(chances_, faults_.loss_per_million)) {
        counters_.count(cut_off ? FaultyCounter::Unreachable : FaultyCounter::Injected);
        inner_->release_burst({&packet, 1});
        return false;
    }
    const Duration late = faults_.delay + (happens(chances_, faults_.reorder_per_million) ? kOvertaken : Duration{});
    if (packet.icrc_ok && happens(chances_, faults_.duplicates_per_million) &&
        held_.hold(packet, now + faults_.delay)) {
        counters_.count(FaultyCounter::Duplicated);
    }
    if (packet.len != 0 && happens(chances_, faults_.damage_per_million)) {
        damage(chances_, packet);
        counters_.count(FaultyCounter::Damaged);
    }
    if (!packet.icrc_ok || late == Duration{}) {
        return true;
    }
    counters_.count(held_.hold(packet, now + late) ? FaultyCounter::HeldBack : FaultyCounter::Injected);
    inner_->release_burst({&packet, 1});
    return false;
}

// Held datagrams come first, since they have waited longest. They leave half of the room to newly received ones.
std::size_t FaultyPort::receive_burst(std::span<PacketRef> out, Instant now) noexcept {
    const std::size_t waited = held_.take_due(*inner_, out.first((out.size() + 1) / 2), now);
    const std::span<PacketRef> rest = out.subspan(waited);
    const std::size_t came = rest.empty() ? 0 : inner_->receive_burst(rest, now);
    std::size_t left = 0;
    for (PacketRef& packet : rest.first(came)) {
        if (meet_fate(packet, now)) {
            rest[left++] = packet;
        }
    }
    return waited + left;
}

// Packets to a peer that is cut off are taken like others, and dropped.
std::size_t FaultyPort::transmit_burst(std::span<TxPacket> packets, Instant now) noexcept {
    if (!faults_.port.happens() && !faults_.peer) {
        return inner_->transmit_burst(packets, now);
    }
    std::size_t taken = 0;
    for (TxPacket& each : packets) {
        if (is_cut_off(*each.packet.path, now)) {
            counters_.count(FaultyCounter::Unreachable);
            inner_->release_burst({&each.packet, 1});
        } else if (inner_->transmit_burst({&each, 1}, now) == 0) {
            break;
        }
        ++taken;
    }
    return taken;
}

Instant FaultyPort::next_deadline() const noexcept {
    return std::min(inner_->next_deadline(), held_.next_due());
}

std::string FaultyPort::describe() const {
    return fmt::format("{}; on purpose: {}", inner_->describe(), faults_.text());
}

void FaultyPort::list_counters(telemetry::CounterList& list) const {
    inner_->list_counters(list);
    list.add(counters_);
}

}  // namespace cairn::port
