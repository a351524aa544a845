// Ports that are taken and given.
#include <gtest/gtest.h>

#include "lib/rdmacm/ports.hpp"

namespace cairn::rdmacm {
namespace {

constexpr int kTcp = 0x0106;
constexpr int kUdp = 0x0111;
const net::IpAddress kAny = net::IpAddress::from_v4(0);
const net::IpAddress kOne = net::IpAddress::from_v4(0x0a000001);
const net::IpAddress kTwo = net::IpAddress::from_v4(0x0a000002);

TEST(RdmacmPortsTest, APortIsTakenOnceAtAnAddress) {
    PortTable ports;
    EXPECT_EQ(ports.claim({kTcp, kOne, 7174, false}, 0), 7174);
    EXPECT_EQ(ports.claim({kTcp, kOne, 7174, false}, 0), 0);
    EXPECT_EQ(ports.claim({kTcp, kTwo, 7174, false}, 0), 7174);
    EXPECT_EQ(ports.claim({kUdp, kOne, 7174, false}, 0), 7174);
}

TEST(RdmacmPortsTest, AnyAddressMeetsEachAddress) {
    PortTable ports;
    EXPECT_EQ(ports.claim({kTcp, kOne, 5, false}, 0), 5);
    EXPECT_EQ(ports.claim({kTcp, kAny, 5, false}, 0), 0);
    EXPECT_EQ(ports.claim({kTcp, kAny, 6, false}, 0), 6);
    EXPECT_EQ(ports.claim({kTcp, kTwo, 6, false}, 0), 0);
}

TEST(RdmacmPortsTest, AnyAddressOfOneFamilyLeavesThePortToTheOther) {
    const net::IpAddress any_v6;
    const auto alone = [](const net::IpAddress& address, std::uint16_t port) {
        return PortClaim{kTcp, address, port, false, false, true};
    };
    PortTable ports;
    EXPECT_EQ(ports.claim(alone(kAny, 5), 0), 5);
    EXPECT_EQ(ports.claim({kTcp, any_v6, 5}, 0), 0);  // covers the addresses of IPv4, too
    EXPECT_EQ(ports.claim(alone(any_v6, 5), 0), 5);
    EXPECT_EQ(ports.claim(alone(any_v6, 5), 0), 0);
    EXPECT_EQ(ports.claim(alone(kOne, 5), 0), 0);
    EXPECT_EQ(ports.claim(alone(kOne, 6), 0), 6);
    EXPECT_EQ(ports.claim(alone(any_v6, 6), 0), 6);
    EXPECT_EQ(ports.claim({kTcp, kAny, 7}, 0), 7);
    EXPECT_EQ(ports.claim(alone(any_v6, 7), 0), 0);
}

TEST(RdmacmPortsTest, OnlyThoseThatAllShareMayShare) {
    PortTable ports;
    EXPECT_EQ(ports.claim({kTcp, kOne, 5, true}, 0), 5);
    EXPECT_EQ(ports.claim({kTcp, kOne, 5, false}, 0), 0);
    EXPECT_EQ(ports.claim({kTcp, kOne, 5, true}, 0), 5);
}

TEST(RdmacmPortsTest, WhoSharesNoMoreIsAlone) {
    PortTable ports;
    EXPECT_FALSE(ports.change({kTcp, kOne, 5, false}));  // no id has it
    EXPECT_EQ(ports.claim({kTcp, kOne, 5, true}, 0), 5);
    EXPECT_EQ(ports.claim({kTcp, kTwo, 5, true}, 0), 5);
    EXPECT_TRUE(ports.change({kTcp, kOne, 5, false}));
    EXPECT_EQ(ports.claim({kTcp, kOne, 5, true}, 0), 0);
    EXPECT_EQ(ports.claim({kTcp, kAny, 5, true}, 0), 0);
    EXPECT_TRUE(ports.change({kTcp, kOne, 5, true}));
    EXPECT_EQ(ports.claim({kTcp, kOne, 5, true}, 0), 5);
    EXPECT_FALSE(ports.change({kTcp, kOne, 5, false}));  // another id has it, too
    EXPECT_EQ(ports.claim({kTcp, kAny, 5, true}, 0), 5);
    EXPECT_FALSE(ports.change({kTcp, kTwo, 5, false}));  // one id has it on all addresses
}

TEST(RdmacmPortsTest, WhatIsGivenBackIsFree) {
    PortTable ports;
    EXPECT_EQ(ports.claim({kTcp, kOne, 5, true}, 0), 5);
    EXPECT_EQ(ports.claim({kTcp, kOne, 5, true}, 0), 5);
    ports.release({kTcp, kOne, 5});
    EXPECT_EQ(ports.claim({kTcp, kOne, 5, false}, 0), 0);
    ports.release({kTcp, kOne, 5});
    EXPECT_EQ(ports.claim({kTcp, kOne, 5, false}, 0), 5);
    ports.release({kTcp, kTwo, 5});  // no id has it
    ports.release({kTcp, kOne, 6});
    EXPECT_EQ(ports.claim({kTcp, kOne, 5, false}, 0), 0);
}

TEST(RdmacmPortsTest, TheLastThatServesAtAnAddressIsKnown) {
    PortTable ports;
    const PortClaim serves{kTcp, kOne, 5, true, true};
    const PortClaim serves_elsewhere{kTcp, kTwo, 5, true, true};
    const PortClaim asks{kTcp, kOne, 5, true, false};
    for (const PortClaim& each : {asks, serves, serves, serves_elsewhere}) {
        EXPECT_EQ(ports.claim(each, 0), 5);
    }
    EXPECT_FALSE(ports.release(serves));
    EXPECT_TRUE(ports.release(serves));
    EXPECT_FALSE(ports.release(serves));  // it is not in the table
    EXPECT_TRUE(ports.release(serves_elsewhere));
    EXPECT_FALSE(ports.release(asks));
    EXPECT_EQ(ports.claim({kTcp, kAny, 5, false}, 0), 5);
}

TEST(RdmacmPortsTest, AFreePortIsGivenUntilAllAreTaken) {
    PortTable ports;
    constexpr std::uint32_t kPorts = PortTable::kLast - PortTable::kFirst + 1;
    EXPECT_EQ(ports.claim({kTcp, kAny, 0, false}, kPorts - 1), PortTable::kLast);
    EXPECT_EQ(ports.claim({kTcp, kAny, 0, false}, kPorts - 1), PortTable::kFirst);  // the next one, in a circle
    for (std::uint32_t i = 2; i < kPorts; ++i) {
        const std::uint16_t port = ports.claim({kTcp, kAny, 0, false}, 7 * i);
        ASSERT_GE(port, PortTable::kFirst);
        ASSERT_LE(port, PortTable::kLast);
    }
    EXPECT_EQ(ports.claim({kTcp, kAny, 0, false}, 3), 0);
    EXPECT_NE(ports.claim({kUdp, kAny, 0, false}, 3), 0);
}

}  // namespace
}  // namespace cairn::rdmacm
