// The earliest time at which received packets may have begun to wait in a socket.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "lib/port/uring_port.hpp"
#include "tests/support/loopback.hpp"

namespace cairn::port {
namespace {

constexpr Instant at_us(std::int64_t us) {
    return Instant{} + microseconds(us);
}

class UringEmpty : public testing::Test {
protected:
    void SetUp() override {
        UringPortConfig config;
        config.local = net::IpAddress::parse(test::loopback(6)).value();
        config.udp_port = test::own_udp_port();
        port = UringPort::open(config).value();
        path = port->open_path({config.local, config.local, 0, 0}, {});
    }
    // Sends to itself.
    void send() {
        TxPacket packet;
        ASSERT_EQ(port->allocate_burst({&packet.packet, 1}), 1U);
        std::memset(packet.packet.data, 0x64, 64);
        packet.packet.path = path;
        packet.packet.len = 68;
        ASSERT_EQ(port->transmit_burst({&packet, 1}, {}), 1U);
        port->wait({}, -1);
    }
    std::size_t receive(Instant now) {
        const std::size_t count = port->receive_burst(burst, now);
        port->release_burst(std::span(burst).first(count));
        return count;
    }
    std::unique_ptr<UringPort> port;
    Path* path = nullptr;
    std::array<PacketRef, 8> burst;
};

TEST_F(UringEmpty, NothingWaitsLongerThanSinceTheLastLookInVain) {
    EXPECT_EQ(receive(at_us(10)), 0U);
    EXPECT_EQ(receive(at_us(20)), 0U);
    send();
    send();
    EXPECT_EQ(receive(at_us(50)), 1U);
    EXPECT_EQ(port->empty_at(), at_us(20));
    EXPECT_EQ(receive(at_us(60)), 1U);
    EXPECT_EQ(port->empty_at(), at_us(20)) << "there were two";
    EXPECT_EQ(receive(at_us(70)), 0U);
    send();
    EXPECT_EQ(receive(at_us(80)), 1U);
    EXPECT_EQ(port->empty_at(), at_us(70));
}

TEST_F(UringEmpty, WhatEndsASleepHasJustCome) {
    EXPECT_EQ(receive(at_us(10)), 0U);
    send();
    port->wait(seconds(1), -1);
    EXPECT_EQ(receive(at_us(500)), 1U);
    EXPECT_EQ(port->empty_at(), at_us(500));
}

}  // namespace
}  // namespace cairn::port
