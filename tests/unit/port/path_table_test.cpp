// The hosts that the path table serves when strangers want all of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "lib/base/secret.hpp"
#include "lib/port/path_table.hpp"
#include "lib/port/port.hpp"

namespace cairn::port {
namespace {

constexpr std::uint32_t kPlaces = 4096;
const net::IpAddress kLocal = net::IpAddress::from_v4(0x0a000001);

PathKey from(std::uint32_t remote, std::uint16_t port) {
    return {kLocal, net::IpAddress::from_v4(remote), port, 0};
}

// Returns the paths that one address gets with `ports` UDP source ports, each pinned at once.
std::vector<Path*> take_all(PathTable& table, std::uint32_t remote, std::uint32_t ports) {
    std::vector<Path*> taken;
    for (std::uint32_t port = 0; port < ports; ++port) {
        if (Path* const path = table.admit(from(remote, static_cast<std::uint16_t>(port))); path != nullptr) {
            path->pin();
            taken.push_back(path);
        }
    }
    return taken;
}

TEST(PathTableShares, AHostThatHoldsAPathForEachOfItsPortsLeavesRoomForNewHostsAndForWhatThisOneOpens) {
    PathTable table(kPlaces);
    const std::vector<Path*> taken = take_all(table, 0x0a000002, 65536);
    EXPECT_GT(taken.size(), kPlaces / 2) << "as long as nobody else is there it may have many";
    EXPECT_LT(taken.size(), kPlaces / 4 * 3);
    for (std::uint32_t host = 0; host < 60; ++host) {
        EXPECT_EQ(take_all(table, 0x0a000100 + host, 16).size(), 16U) << host;
    }
    for (std::uint16_t port = 0; port < kPlaces / 8; ++port) {
        Path* const own = table.intern(from(0x0a000003, port));
        ASSERT_NE(own, nullptr) << port;
        own->pin();
    }
    for (Path* const path : taken) {
        EXPECT_EQ(path->key().remote.v4(), 0x0a000002U) << "what is pinned stays";
    }
}

TEST(PathTableShares, ManyHostsTogetherLeaveRoomForWhatThisOneOpens) {
    PathTable table(kPlaces);
    std::uint32_t taken = 0;
    for (std::uint32_t host = 0; host < 2 * kPlaces; ++host) {
        taken += static_cast<std::uint32_t>(take_all(table, 0x0b000000 + host, 1).size());
    }
    EXPECT_GT(taken, kPlaces / 4 * 3);
    for (std::uint16_t port = 0; port < kPlaces / 8; ++port) {
        Path* const own = table.intern(from(0x0a000003, port));
        ASSERT_NE(own, nullptr) << port;
        own->pin();
    }
}

TEST(PathTableShares, WhatNobodyPinsMakesRoomForWhoeverComes) {
    PathTable table(kPlaces);
    for (std::uint32_t port = 0; port < 65536; ++port) {
        ASSERT_NE(table.admit(from(0x0a000002, static_cast<std::uint16_t>(port))), nullptr) << port;
    }
    EXPECT_EQ(take_all(table, 0x0a000003, 2000).size(), 2000U);
    for (std::uint32_t host = 0; host < 2000; ++host) {
        ASSERT_NE(table.admit(from(0x0b000000 + host, 1)), nullptr) << host;
    }
    EXPECT_LE(table.size(), kPlaces);
}

TEST(PathTableShares, WhoHasManyPathsTakesNoneFromWhoHasFew) {
    PathTable table(kPlaces);
    const std::uint32_t friends = 1000;
    for (std::uint32_t host = 0; host < friends; ++host) {
        ASSERT_NE(table.admit(from(0x0b000000 + host, 1)), nullptr);
    }
    for (std::uint32_t round = 0; round < 3; ++round) {
        for (std::uint32_t port = 0; port < 65536; ++port) {
            (void)table.admit(from(0x0a000002, static_cast<std::uint16_t>(port)));
        }
    }
    for (std::uint32_t host = 0; host < friends; ++host) {
        EXPECT_NE(table.find(from(0x0b000000 + host, 1)), nullptr) << host;
    }
}

TEST(PathTableShares, APathOfTheBurstUnderWayIsNotRecycled) {
    PathTable table(2);
    std::array<PacketRef, 2> burst;
    table.begin_burst();
    for (std::uint16_t port = 1; PacketRef & packet : burst) {
        packet.path = table.admit(from(1, port++));
        table.keep(*packet.path);
    }
    EXPECT_EQ(table.admit(from(1, 3)), nullptr);
    EXPECT_EQ(burst[0].path->pins(), 0U);
    EXPECT_EQ(burst[1].path->key(), from(1, 2));
    table.begin_burst();
    table.keep(*burst[0].path);
    EXPECT_EQ(table.admit(from(1, 3)), burst[1].path);
}

// A user that looks at a burst answers it, and opens paths for that. They must not replace paths of the packets that it
// still has to look at.
TEST(PathTableShares, APathOfTheBurstThatWasHandedOutIsNotRecycled) {
    PathTable table(2);
    std::array<PacketRef, 2> burst;
    table.begin_burst();
    for (std::uint16_t port = 1; PacketRef & packet : burst) {
        packet.path = table.admit(from(1, port++));
        table.keep(*packet.path);
    }
    EXPECT_EQ(table.intern(from(9, 1)), nullptr);
    EXPECT_EQ(table.admit(from(9, 1)), nullptr);
    EXPECT_EQ(burst[0].path->key(), from(1, 1));
    EXPECT_EQ(burst[1].path->key(), from(1, 2));
    table.begin_burst();
    table.keep(*burst[0].path);
    EXPECT_EQ(table.intern(from(9, 1)), burst[1].path);
    EXPECT_EQ(burst[0].path->key(), from(1, 1));
}

TEST(PathTableStations, PathsToOneAddressAreFoundByItAndByNoOther) {
    PathTable table(8);
    for (std::uint16_t port = 1; port <= 3; ++port) {
        (void)table.intern(from(1, port));
    }
    (void)table.intern(from(2, 1));
    const auto ports_to = [&table](std::uint32_t remote) {
        std::vector<std::uint16_t> ports;
        if (const auto* const station = table.station(net::IpAddress::from_v4(remote)); station != nullptr) {
            table.for_each_to(*station, [&](Path& path) { ports.push_back(path.key().udp_source_port); });
        }
        std::sort(ports.begin(), ports.end());
        return ports;
    };
    EXPECT_EQ(ports_to(1), (std::vector<std::uint16_t>{1, 2, 3}));
    EXPECT_EQ(ports_to(2), (std::vector<std::uint16_t>{1}));
    EXPECT_TRUE(ports_to(3).empty());
    for (std::uint16_t port = 1; port <= 8; ++port) {  // all others are recycled
        table.intern(from(4, port))->pin();
    }
    EXPECT_TRUE(ports_to(1).empty());
    EXPECT_EQ(ports_to(4).size(), 8U);
    std::size_t stations = 0;
    table.for_each_station([&stations](const PathTable::Station&) { ++stations; });
    EXPECT_EQ(stations, 1U);
}

// Returns hashes that everyone can compute: a fixed mixing, and the table's own without a secret.
std::uint64_t mixed(std::uint64_t value) {
    value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
    return value ^ (value >> 27U);
}

std::uint64_t fixed_hash(const net::IpAddress& remote, std::uint16_t port) {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    std::memcpy(&low, remote.octets().data() + 8, 8);
    std::memcpy(&high, remote.octets().data(), 8);
    return mixed(low ^ mixed(high + port));
}

std::uint64_t hash_without_secret(const net::IpAddress& remote, std::uint16_t port) {
    static const std::array<std::uint64_t, 6> kFactors = [] {
        std::array<std::uint64_t, 6> factors{};
        for (std::size_t i = 0; i < factors.size(); ++i) {
            factors[i] = sip_hash({}, i);
        }
        return factors;
    }();
    std::array<std::uint32_t, 5> words{};
    std::memcpy(words.data(), remote.octets().data(), 16);
    words.back() = port;
    std::uint64_t sum = kFactors.back();
    for (std::size_t i = 0; i < words.size(); ++i) {
        sum += kFactors[i] * words[i];
    }
    return sum >> 32U;
}

std::uint32_t longest_chain_of_one_bucket(PathTable& table,
                                          std::uint64_t (*hash)(const net::IpAddress&, std::uint16_t)) {
    std::uint32_t found = 0;
    for (std::uint64_t tries = 0; found < kPlaces / 8; ++tries) {
        std::array<std::uint8_t, 16> octets{0xfd};
        std::memcpy(octets.data() + 8, &tries, sizeof(tries));
        const PathKey key{net::IpAddress::parse("fd00::1").value(), net::IpAddress::from_v6(octets), 7, 0};
        if ((hash(key.remote, 7) & (kPlaces - 1)) == 0) {
            EXPECT_NE(table.admit(key), nullptr);
            ++found;
        }
    }
    return table.longest_chain();
}

TEST(PathTableBuckets, KeysChosenToShareABucketShareNoneWhereTheSecretIsNotKnown) {
    PathTable fixed(kPlaces, 0, draw_secret());
    EXPECT_LT(longest_chain_of_one_bucket(fixed, fixed_hash), 32U);
    PathTable other(kPlaces, 0, draw_secret());
    EXPECT_LT(longest_chain_of_one_bucket(other, hash_without_secret), 32U);
    PathTable known(kPlaces);
    EXPECT_EQ(longest_chain_of_one_bucket(known, hash_without_secret), kPlaces / 8) << "whoever knows it can";
}

}  // namespace
}  // namespace cairn::port
