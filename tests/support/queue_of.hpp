// Queues of one port in memory, as on a NIC with several workers: the low bits of a datagram's queue pair number name
// its worker. Numbers 0 and 1, and groups, belong to worker 0. One thread drives all of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "lib/port/port.hpp"
#include "lib/wire/ud.hpp"
#include "tests/support/wire_port.hpp"

namespace cairn::test {

struct SharedWire {
    SharedWire(const char* address, std::size_t buffers, std::uint8_t bits)
        : wire(address, buffers), owner_bits(bits), waiting(std::size_t{1} << bits) {}

    WirePort wire;
    const std::uint8_t owner_bits;
    std::vector<std::deque<port::PacketRef>> waiting;  // by worker; their paths are pinned
};

class QueueOf final : public port::Port {
public:
    QueueOf(SharedWire& shared, std::uint32_t owner) : shared_(shared), own_(shared.waiting[owner]) {}

    // Returns the Ethernet address of a host.
    [[nodiscard]] static net::MacAddress mac_of(const net::IpAddress& host) noexcept {
        const std::array<std::uint8_t, 16>& octets = host.octets();
        return {{2, 0, octets[12], octets[13], octets[14], octets[15]}};
    }
    std::vector<port::WayBack> ways_back{};  // of unknown peers whose datagrams another worker received
    std::uint64_t asked = 0;                 // paths to hosts that no queue here leads to: a neighbour would be asked

    [[nodiscard]] std::size_t receive_burst(std::span<port::PacketRef> out, Instant now) noexcept override {
        std::array<port::PacketRef, 32> burst;
        const std::size_t came = wire().receive_burst(burst, now);
        for (const port::PacketRef& packet : std::span(burst).first(came)) {
            packet.path->pin();
            shared_.waiting[owner_of(packet)].push_back(packet);
        }
        std::size_t count = 0;
        for (; count < out.size() && !own_.empty(); ++count) {
            out[count] = own_.front();
            out[count].path->unpin();
            out[count].path->resolve({}, mac_of(out[count].path->key().remote));
            own_.pop_front();
        }
        return count;
    }
    [[nodiscard]] Instant empty_at() const noexcept override { return shared_.wire.empty_at(); }
    [[nodiscard]] std::size_t transmit_burst(std::span<port::TxPacket> packets, Instant now) noexcept override {
        return wire().transmit_burst(packets, now);
    }
    [[nodiscard]] std::size_t allocate_burst(std::span<port::PacketRef> out) noexcept override {
        return wire().allocate_burst(out);
    }
    void release_burst(std::span<port::PacketRef> packets) noexcept override { wire().release_burst(packets); }
    [[nodiscard]] bool can_send_from(std::span<const std::uint8_t> range) const noexcept override {
        return shared_.wire.can_send_from(range);
    }
    [[nodiscard]] port::Path* open_path(const port::PathKey& key, Instant now) noexcept override {
        const auto leads_there = [&key](const port::WayBack& way) noexcept { return way.key.remote == key.remote; };
        asked += std::any_of(ways_back.begin(), ways_back.end(), leads_there) ? 0U : 1U;
        return wire().open_path(key, now);
    }
    [[nodiscard]] port::Path* path_back(const port::WayBack& way, Instant now) noexcept override {
        ways_back.push_back(way);
        return wire().path_back(way, now);
    }
    void on_timeout(Instant now) noexcept override { wire().on_timeout(now); }
    [[nodiscard]] Instant next_deadline() const noexcept override {
        return own_.empty() ? shared_.wire.next_deadline() : Instant{};
    }
    [[nodiscard]] net::IpAddress local_address() const noexcept override { return shared_.wire.local_address(); }
    [[nodiscard]] port::PortLimits limits() const noexcept override { return shared_.wire.limits(); }
    [[nodiscard]] std::string describe() const override { return "a queue in memory"; }

private:
    [[nodiscard]] WirePort& wire() noexcept { return shared_.wire; }
    [[nodiscard]] std::size_t owner_of(const port::PacketRef& packet) const noexcept {
        const Qpn to{reinterpret_cast<const wire::RawBth*>(packet.data)->dest_qpn.get()};
        return to.value <= 1 || to == wire::kGroupQpn ? 0 : to.value & ((1U << shared_.owner_bits) - 1);
    }

    SharedWire& shared_;
    std::deque<port::PacketRef>& own_;
};

}  // namespace cairn::test
