// Shares of a scarce resource: which host gives way to which other one.
#include "lib/net/shares.hpp"

#include <gtest/gtest.h>

#include <array>
#include <span>

namespace cairn::net {
namespace {

const IpAddress kGreedy = IpAddress::from_v4(0x0a000001);
const IpAddress kModest = IpAddress::from_v4(0x0a000002);
const IpAddress kOtherHost = IpAddress::from_v4(0x0a000003);

class SharesTest : public testing::Test {
protected:
    void add(const IpAddress& source, int id) { tickets[id] = {source, shares.add(source, id)}; }
    void remove(int id) { shares.remove(tickets.at(id).first, tickets.at(id).second); }

    Shares<int> shares;
    std::map<int, std::pair<IpAddress, Shares<int>::Ticket>> tickets;
};

TEST_F(SharesTest, WhoHoldsMostGivesItsOldestToWhoHoldsLess) {
    for (const int id : {1, 2, 3}) {
        add(kGreedy, id);
    }
    add(kModest, 4);
    EXPECT_EQ(shares.size(), 4U);
    EXPECT_EQ(shares.who_gives_way_to(kModest), 1);
    EXPECT_EQ(shares.who_gives_way_to(kOtherHost), 1);
    EXPECT_EQ(shares.who_gives_way_to(kGreedy), std::nullopt);
    remove(1);
    EXPECT_EQ(shares.first_to_go(), 2);
}

TEST_F(SharesTest, NobodyGivesWayToAnEqualOrToOneThatWouldHoldMoreThen) {
    add(kGreedy, 1);
    add(kGreedy, 2);
    add(kModest, 3);
    EXPECT_EQ(shares.who_gives_way_to(kModest), std::nullopt);  // they would change places again and again
    add(kModest, 4);
    EXPECT_EQ(shares.who_gives_way_to(kModest), std::nullopt);
}

TEST_F(SharesTest, AmongManyWithOneEachTheOldestGivesWayToANewcomer) {
    for (int i = 0; i < 100; ++i) {
        add(IpAddress::from_v4(0x0b000000 + static_cast<std::uint32_t>(i * 7919 % 100)), i);
    }
    EXPECT_EQ(shares.who_gives_way_to(kModest), 0);
    remove(0);
    EXPECT_EQ(shares.who_gives_way_to(kModest), 1);
}

TEST_F(SharesTest, AnIpv6LinkIsOneHost) {
    std::array<std::uint8_t, 16> octets{0x20, 0x01, 0x0d, 0xb8};
    for (int i = 0; i < 3; ++i) {
        octets[15] = static_cast<std::uint8_t>(i);
        octets[8] = static_cast<std::uint8_t>(i + 1);
        add(IpAddress::from_v6(octets), i);
    }
    octets[8] = 99;
    EXPECT_EQ(shares.who_gives_way_to(IpAddress::from_v6(octets)), std::nullopt);
    octets[7] = 1;
    EXPECT_EQ(shares.who_gives_way_to(IpAddress::from_v6(octets)), 0);
}

// On one link, a stranger's address is no reason for its neighbours to give way.
TEST_F(SharesTest, NeighboursOnALinkAreHostsOfTheirOwn) {
    std::array<std::uint8_t, 16> octets{0xfe, 0x80};
    for (int i = 0; i < 3; ++i) {
        octets[15] = 1;
        add(IpAddress::from_v6(octets), i);
    }
    octets[15] = 2;
    EXPECT_EQ(shares.who_gives_way_to(IpAddress::from_v6(octets)), 0);
}

TEST_F(SharesTest, AHostsOldestAreNamedInTheirOrder) {
    for (const int id : {5, 6, 7}) {
        add(kModest, id);
        add(kOtherHost, 10 + id);
    }
    remove(5);
    std::array<int, 2> oldest{};
    EXPECT_EQ(shares.oldest_of(kModest, std::span(oldest).first(1)), 1U);
    EXPECT_EQ(oldest[0], 6);
    EXPECT_EQ(shares.oldest_of(kModest, oldest), 2U);
    EXPECT_EQ(oldest, (std::array{6, 7}));
    EXPECT_EQ(shares.oldest_of(kGreedy, oldest), 0U);
}

TEST_F(SharesTest, WhatIsEmptyGivesNothing) {
    EXPECT_EQ(shares.first_to_go(), std::nullopt);
    EXPECT_EQ(shares.who_gives_way_to(kModest), std::nullopt);
    add(kModest, 1);
    remove(1);
    EXPECT_EQ(shares.first_to_go(), std::nullopt);
    EXPECT_EQ(shares.size(), 0U);
}

}  // namespace
}  // namespace cairn::net
