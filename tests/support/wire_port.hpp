// Ports joined by wires in memory, with virtual time and losses on demand: for protocol tests that name each packet.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "lib/port/path_table.hpp"
#include "lib/port/port.hpp"
#include "lib/wire/icrc.hpp"
#include "tests/support/attached_port.hpp"
#include "tests/support/joined.hpp"

namespace cairn::test {

class WirePort final : public AttachedPort, public Joined<WirePort> {
public:
    static constexpr std::uint16_t kRoom = 4400;
    static constexpr std::size_t kHeadroom = 128;
    WirePort(const char* address, std::size_t buffers, bool batches_equals = false)
        : address_(net::IpAddress::parse(address).value()), batches_equals_(batches_equals) {
        for (std::size_t i = 0; i < buffers; ++i) {
            storage_.push_back(std::make_unique<std::vector<std::uint8_t>>(kHeadroom + kRoom));
            free_.push_back(storage_.back().get());
        }
    }
    using Joined::join;
    void hold_paths(std::uint32_t paths) { paths_ = port::PathTable(paths); }  // before any is in use

    // Returns the fate of each datagram sent, by its number: 0 lost, 1 delivered, 2 doubled. Default: delivered.
    std::function<int(std::uint64_t)> fate = [](std::uint64_t) { return 1; };
    // Returns whether a switch marks a datagram with congestion; it marks only ECN-capable ones. Default: none.
    std::function<bool(std::uint64_t)> marks = [](std::uint64_t) { return false; };
    std::size_t carries_least = 0, carries_most = port::kMaxUdpPayloadBytes;  // other datagrams are lost
    bool loses_strays = false;  // loses datagrams to an unknown address; else the first peer gets them
    bool damages = false;       // sends datagrams whose ICRC is wrong
    // Payloads that stay in place are read for the ICRC at once, and again when the next receive_burst() sends them.
    bool spares_buffers = true;
    std::uint16_t most_bytes = port::kMaxUdpPayloadBytes;
    std::size_t most_per_turn = ~std::size_t{0};  // packets taken between two receive_burst(), as with a full ring
    Duration waited{};                            // how long arriving packets have lain here, as empty_at() says
    [[nodiscard]] std::size_t receive_burst(std::span<port::PacketRef> out, Instant now) noexcept override {
        std::size_t count = 0;
        paths_.begin_burst();
        empty_at_ = now;
        taken_ = 0;
        deliver_waiting();
        while (count < out.size() && !arrivals_.empty()) {
            if (allocate_burst(out.subspan(count, 1)) == 0) {
                break;
            }
            const Arrival& arrival = arrivals_.front();
            port::PacketRef& packet = out[count++];
            packet.path = paths_.admit({arrival.to, arrival.from, arrival.udp_source_port, 0});
            if (packet.path == nullptr) {
                release_burst(out.subspan(--count, 1));
                arrivals_.pop_front();
                continue;
            }
            paths_.keep(*packet.path);
            std::memcpy(packet.data, arrival.bytes.data(), arrival.bytes.size());
            packet.len = static_cast<std::uint16_t>(arrival.bytes.size());
            packet.ecn = arrival.ecn;
            std::uint32_t carried = 0;
            std::memcpy(&carried, packet.data + packet.len - port::kIcrcBytes, sizeof(carried));
            packet.icrc_ok = packet.path->icrc(port::Direction::Receive, packet.data, packet.len) == carried;
            arrivals_.pop_front();
        }
        return count;
    }
    [[nodiscard]] Instant empty_at() const noexcept override { return empty_at_ - waited; }
    [[nodiscard]] std::size_t transmit_burst(std::span<port::TxPacket> packets, Instant) noexcept override {
        packets = packets.first(std::min(packets.size(), most_per_turn - taken_));
        taken_ += packets.size();
        waiting_.insert(waiting_.end(), packets.begin(), packets.end());
        std::for_each(packets.begin(), packets.end(), [this](const port::TxPacket& each) { seal(each); });
        if (!sends_in_place) {
            deliver_waiting();
        }
        return packets.size();
    }
    [[nodiscard]] bool holds_back() const noexcept override { return !waiting_.empty(); }
    void copy_tails(const port::TailFilter& which) noexcept override {
        for (port::TxPacket& waiting : waiting_) {
            if (which(waiting)) {
                append_tail(waiting);
            }
        }
    }

    [[nodiscard]] std::size_t allocate_burst(std::span<port::PacketRef> out) noexcept override {
        std::size_t count = 0;
        for (; count < out.size() && !free_.empty(); ++count) {
            out[count] = {};
            out[count].cookie = free_.back();
            out[count].data = free_.back()->data() + kHeadroom;
            out[count].room = kRoom;
            free_.pop_back();
        }
        return count;
    }
    void release_burst(std::span<port::PacketRef> packets) noexcept override {
        for (const port::PacketRef& packet : packets) {
            if (packet.cookie != nullptr) {
                free_.push_back(static_cast<std::vector<std::uint8_t>*>(packet.cookie));
            }
        }
    }
    [[nodiscard]] bool has_spare_buffers() const noexcept override { return spares_buffers; }
    [[nodiscard]] port::Path* open_path(const port::PathKey& key, Instant) noexcept override {
        return paths_.intern(key);
    }
    Status join(const net::IpAddress& group) override {
        groups_.push_back(group);
        return Nothing{};
    }
    void leave(const net::IpAddress& group) noexcept override { std::erase(groups_, group); }
    void on_timeout(Instant) noexcept override {}
    [[nodiscard]] Instant next_deadline() const noexcept override { return Instant::never(); }
    [[nodiscard]] net::IpAddress local_address() const noexcept override { return address_; }
    [[nodiscard]] port::PortLimits limits() const noexcept override { return {most_bytes, 16, true, batches_equals_}; }
    [[nodiscard]] std::string describe() const override { return "wire"; }
    [[nodiscard]] std::size_t buffers_in_use() const { return storage_.size() - free_.size(); }
    [[nodiscard]] std::uint64_t sent() const { return sent_; }
    [[nodiscard]] const std::vector<net::IpAddress>& groups() const { return groups_; }

private:
    struct Arrival {
        std::vector<std::uint8_t> bytes;
        net::IpAddress from;
        net::IpAddress to;
        std::uint16_t udp_source_port;
        std::uint8_t ecn;
    };
    void seal(const port::TxPacket& sent) const {
        const port::PacketRef& head = sent.packet;
        std::uint8_t* const end = head.data + head.len - port::kIcrcBytes;
        const std::uint32_t headers =
            head.path->icrc_of_headers(port::Direction::Transmit, head.data, static_cast<std::size_t>(end - head.data),
                                       static_cast<std::uint16_t>(head.len + sent.tail.size()));
        const std::uint32_t icrc = wire::crc32(headers, sent.tail.data(), sent.tail.size()) ^ (damages ? ~0U : 0U);
        std::memcpy(end, &icrc, sizeof(icrc));
    }
    static void append_tail(port::TxPacket& sent) noexcept {
        std::uint8_t* const end = sent.packet.data + sent.packet.len - port::kIcrcBytes;
        std::copy_n(end, port::kIcrcBytes, end + sent.tail.size());
        std::copy(sent.tail.begin(), sent.tail.end(), end);
        sent.packet.len = static_cast<std::uint16_t>(sent.packet.len + std::exchange(sent.tail, {}).size());
    }
    void deliver_waiting() {
        for (port::TxPacket& waiting : waiting_) {
            append_tail(waiting);
            port::PacketRef& packet = waiting.packet;
            const port::PathKey& key = packet.path->key();
            tap({packet.data, packet.len}, key.remote);
            const auto own = static_cast<std::uint8_t>(key.traffic_class & 3U);
            const std::uint8_t ecn = own != 0 && marks(sent_) ? 3 : own;
            const bool fits = packet.len >= carries_least && packet.len <= carries_most;
            for (int copies = fits ? fate(sent_++) : 0; copies > 0; --copies) {
                deliver({{packet.data, packet.data + packet.len}, key.local, key.remote, key.udp_source_port, ecn});
            }
            release_burst({&packet, 1});
        }
        waiting_.clear();
    }
    // Delivers to the peer with the address, or to all peers in the group.
    void deliver(const Arrival& arrival) {
        if (!arrival.to.is_group()) {
            if (WirePort* const peer = towards(arrival.to); peer != nullptr) {
                peer->arrivals_.push_back(arrival);
                peer->arrivals_.back().to = peer->address_;
            }
            return;
        }
        for (WirePort* const peer : peers_) {
            if (std::find(peer->groups_.begin(), peer->groups_.end(), arrival.to) != peer->groups_.end()) {
                peer->arrivals_.push_back(arrival);
            }
        }
    }
    [[nodiscard]] WirePort* towards(const net::IpAddress& remote) const noexcept {
        const auto is_it = [&remote](const WirePort* peer) { return peer->address_ == remote; };
        const auto found = std::find_if(peers_.begin(), peers_.end(), is_it);
        return found != peers_.end() ? *found : loses_strays || peers_.empty() ? nullptr : peers_.front();
    }
    net::IpAddress address_;
    const bool batches_equals_;
    std::vector<net::IpAddress> groups_;
    std::uint64_t sent_ = 0, taken_ = 0;
    port::PathTable paths_{256};
    Instant empty_at_{};
    std::vector<std::unique_ptr<std::vector<std::uint8_t>>> storage_;
    std::vector<std::vector<std::uint8_t>*> free_;
    std::deque<Arrival> arrivals_;
};

}  // namespace cairn::test
