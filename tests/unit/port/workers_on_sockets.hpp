// Ports of several workers on one address, and a peer that sends to their queue pairs.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/port/uring_port.hpp"
#include "tests/support/loopback.hpp"

namespace cairn::port {

using Numbers = std::vector<std::uint32_t>;

// Returns `count` numbers from `first` on, in steps of `step`.
inline Numbers counted(std::uint32_t first, std::uint32_t step, std::size_t count) {
    Numbers numbers(count);
    for (std::size_t i = 0; i < count; ++i) {
        numbers[i] = first + step * static_cast<std::uint32_t>(i);
    }
    return numbers;
}

class WorkersOnSockets : public testing::TestWithParam<bool> {  // true: IPv6
protected:
    static constexpr std::size_t kBytes = 68;

    void SetUp() override {
        if (GetParam() && !test::has_loopback_v6()) {
            GTEST_SKIP() << "there is no ::1 here";
        }
    }
    // Returns the address of a host. IPv6 has only one: the peer has another UDP port there, as only foreign peers do.
    static net::IpAddress address(std::uint32_t host) {
        return net::IpAddress::parse(GetParam() ? "::1" : test::loopback(host)).value();
    }
    static SocketQueuesConfig config_of(std::uint32_t host, std::uint32_t count) {
        return {address(host), test::own_udp_port(), count, {}};
    }
    using Ports = std::vector<std::unique_ptr<UringPort>>;
    static Ports open(const SocketQueuesConfig& config, SocketMode mode = SocketMode::Defer) {
        auto queues = SocketQueues::open(config);
        EXPECT_TRUE(queues.ok()) << (queues.ok() ? "" : queues.error().text());
        UringPortConfig own;
        own.mode = mode;
        Ports ports;
        for (std::uint32_t worker = 0; worker < config.workers; ++worker) {
            ports.push_back(UringPort::open(own, queues.value(), worker).value());
        }
        return ports;
    }
    // Composes a datagram. The first four bytes after the BTH are its number.
    static void compose(std::uint8_t* data, std::uint32_t qpn, std::uint32_t number) {
        std::memset(data, 0x40, kBytes);
        data[4] = 0xff;
        data[5] = static_cast<std::uint8_t>(qpn >> 16U);
        data[6] = static_cast<std::uint8_t>(qpn >> 8U);
        data[7] = static_cast<std::uint8_t>(qpn);
        std::memcpy(data + wire::Bth::kBytes, &number, sizeof(number));
    }
    static std::uint32_t number_of(const PacketRef& packet) {
        std::uint32_t number = 0;
        std::memcpy(&number, packet.data + wire::Bth::kBytes, sizeof(number));
        return number;
    }
    // Sends one burst, numbered from 0 on, which leaves at once.
    void send(UringPort& from, const net::IpAddress& to, const std::vector<std::uint32_t>& qpns) {
        Path* const path = from.open_path({from.local_address(), to, 0, 0}, now);
        std::vector<PacketRef> buffers(qpns.size());
        ASSERT_EQ(from.allocate_burst(buffers), buffers.size());
        std::vector<TxPacket> packets(qpns.size());
        for (std::uint32_t i = 0; i < qpns.size(); ++i) {
            compose(buffers[i].data, qpns[i], i);
            packets[i].packet = buffers[i];
            packets[i].packet.path = path;
            packets[i].packet.len = kBytes;
        }
        ASSERT_EQ(from.transmit_burst(packets, now), packets.size());
        from.wait({}, -1);
    }
    // Returns the numbers of datagrams until none comes for some time, at most `most`.
    std::vector<std::uint32_t> receive(UringPort& port, std::size_t most) {
        std::vector<std::uint32_t> numbers;
        std::array<PacketRef, 64> burst;
        for (int idle = 0; idle < 50 && numbers.size() < most; ++idle) {
            const std::size_t count = port.receive_burst(burst, now);
            for (const PacketRef& packet : std::span(burst).first(count)) {
                EXPECT_TRUE(packet.icrc_ok);
                EXPECT_EQ(packet.len, kBytes);
                numbers.push_back(number_of(packet));
                idle = 0;
            }
            port.release_burst(std::span(burst).first(count));
        }
        return numbers;
    }
    static std::uint64_t count_of(const UringPort& port, UringCounter counter) { return port.counters().of(counter); }

    Instant now{1'000};
};

inline std::string family_of(const testing::TestParamInfo<bool>& info) {
    return info.param ? "V6" : "V4";
}

}  // namespace cairn::port
