#include <algorithm>

#include "lib/wire/packet.hpp"
#include "lib/wire/ud.hpp"
#include "pmd_glue/echo.hpp"

namespace cairn::pmd {

namespace {

// Returns whether the datagram is sound up to its QPN and keys, which a receiving queue pair judges next.
bool is_sound_send(const port::PacketRef& packet) noexcept {
    wire::UdParts parts;
    return packet.icrc_ok && !wire::judge_ud(packet.data, packet.len, parts);
}

// Addresses the datagram to the queue pair that sent it, from the one that it was sent to.
void turn_around(port::PacketRef& packet) noexcept {
    auto& raw = *reinterpret_cast<wire::RawUd*>(packet.data);
    const std::uint32_t there = raw.deth.source_qpn.get();
    raw.deth.source_qpn.set(raw.bth.dest_qpn.get());
    raw.bth.dest_qpn.set(there);
}

}  // namespace

bool Echo::run_turn(Instant now) noexcept {
    bool worked = false;
    for (Lane& lane : lanes_) {
        worked |= echo(lane, now);
    }
    return worked;
}

// Echoes datagrams. The port answers ARP, neighbour solicitations and pings by itself, and the mode icmpecho needs no
// more.
bool Echo::echo(Lane& lane, Instant now) noexcept {
    const std::size_t got = lane.port->receive_burst(std::span(burst_).first(burst_packets_), now);
    lane.port->on_timeout(now);
    std::size_t count = 0;
    for (port::PacketRef& packet : std::span(burst_).first(got)) {
        const std::uint64_t bytes = packet.len + packet.path->lower_bytes();
        lane.counters.count(ForwardCounter::RxPackets);
        lane.counters.count(ForwardCounter::RxBytes, bytes);
        if (mode_ == ForwardMode::RoceEcho && is_sound_send(packet)) {
            turn_around(packet);
            answers_[count++] = {packet, {}};
            lane.counters.count(ForwardCounter::TxBytes, bytes);
        } else {
            ignore(lane, packet);
        }
    }
    const std::size_t sent = lane.port->transmit_burst(std::span(answers_).first(count), now);
    lane.counters.count(ForwardCounter::TxPackets, sent);
    for (std::size_t i = sent; i < count; ++i) {
        lane.counters.count(ForwardCounter::TxDropped);
        lane.port->release_burst({&answers_[i].packet, 1});
    }
    return got != 0;
}

// Drops a packet. Wrong ICRCs are in the port's own counters.
void Echo::ignore(Lane& lane, port::PacketRef& packet) const noexcept {
    lane.counters.count(ForwardCounter::Ignored);
    if (mode_ == ForwardMode::RoceEcho && packet.icrc_ok) {
        const wire::Parsed<wire::Packet> parsed = wire::Packet::parse({packet.data, packet.len});
        if (!parsed.ok()) {
            lane.drops.count(parsed.reason());
        }
    }
    lane.port->release_burst({&packet, 1});
}

// Returns false for several sockets, as a worker cannot sleep on all of them at once.
bool Echo::can_wait() const noexcept {
    return lanes_.size() == 1 && !lanes_.front().port->limits().poll_only;
}

void Echo::wait(Instant now) noexcept {
    if (can_wait()) {
        port::Port& only = *lanes_.front().port;
        only.wait(std::min(only.next_deadline() - now, kLongestWait), -1);
    } else {
        worker::Task::wait(now);
    }
}

}  // namespace cairn::pmd
