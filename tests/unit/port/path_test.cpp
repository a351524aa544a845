// Paths: each side recognises the packets of the other one, and both agree with the reference ICRC.
#include "lib/port/path.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "lib/port/path_table.hpp"
#include "lib/port/port.hpp"
#include "lib/wire/icrc.hpp"

namespace cairn::port {
namespace {

constexpr net::MacAddress kMacOfA{{2, 0, 0, 0, 0, 1}};
constexpr net::MacAddress kMacOfB{{2, 0, 0, 0, 0, 2}};

PathKey key_of(const char* local, const char* remote) {
    return {net::IpAddress::parse(local).value(), net::IpAddress::parse(remote).value(), 0xc123, 0x68};
}

struct Pair {
    Path a;
    Path b;
};

Pair make_pair(bool v4) {
    Pair pair{Path(v4 ? key_of("10.1.0.1", "10.1.0.2") : key_of("fd00::1", "fd00::2")),
              Path(v4 ? key_of("10.1.0.2", "10.1.0.1") : key_of("fd00::2", "fd00::1"))};
    pair.a.resolve(kMacOfA, kMacOfB);
    pair.b.resolve(kMacOfB, kMacOfA);
    return pair;
}

std::vector<std::uint8_t> make_frame(Path& from, std::size_t payload_bytes) {
    std::vector<std::uint8_t> frame(from.lower_bytes() + payload_bytes, 0xa5);
    std::uint8_t* bth = frame.data() + from.lower_bytes();
    for (std::size_t i = 0; i < payload_bytes; ++i) {
        bth[i] = static_cast<std::uint8_t>(i * 7 + payload_bytes);
    }
    from.write_lower_headers(bth, static_cast<std::uint16_t>(payload_bytes));
    const std::uint32_t icrc = from.icrc(Direction::Transmit, bth, static_cast<std::uint16_t>(payload_bytes));
    std::memcpy(bth + payload_bytes - 4, &icrc, 4);
    return frame;
}

class PathTest : public testing::TestWithParam<bool> {};

TEST_P(PathTest, ThePeerRecognisesEveryLengthAndBothAgreeWithTheReference) {
    Pair pair = make_pair(GetParam());
    for (std::size_t bytes = 16; bytes <= 300; ++bytes) {
        const std::vector<std::uint8_t> frame = make_frame(pair.a, bytes);
        ASSERT_TRUE(pair.b.matches_received(frame.data(), frame.size())) << bytes;
        std::uint32_t carried = 0;
        std::memcpy(&carried, frame.data() + frame.size() - 4, 4);
        const std::uint8_t* bth = frame.data() + pair.b.lower_bytes();
        EXPECT_EQ(pair.b.icrc(Direction::Receive, bth, static_cast<std::uint16_t>(bytes)), carried) << bytes;
        EXPECT_EQ(wire::icrc_reference(std::span(frame).subspan(14, frame.size() - 18)), carried) << bytes;
    }
}

TEST_P(PathTest, AnyFlippedBitOfTheCheckedHeadersIsRefused) {
    Pair pair = make_pair(GetParam());
    const std::vector<std::uint8_t> frame = make_frame(pair.a, 104);
    for (std::size_t at = 0; at < pair.b.lower_bytes(); ++at) {
        const bool source_mac = at >= 6 && at < 12;
        const bool v6_variant = !GetParam() && at >= 14 && (at < 18 || at == 21);
        if (source_mac || v6_variant) {
            continue;
        }
        for (std::uint8_t bit = 1; bit != 0; bit = static_cast<std::uint8_t>(bit << 1U)) {
            std::vector<std::uint8_t> damaged = frame;
            damaged[at] ^= bit;
            EXPECT_FALSE(pair.b.matches_received(damaged.data(), damaged.size())) << at;
        }
    }
    EXPECT_FALSE(pair.b.matches_received(frame.data(), frame.size() - 1)) << "a frame shorter than it says";
}

TEST_P(PathTest, SealedDatagramsArriveWholeAndAreWrittenAsInTwoSteps) {
    Pair pair = make_pair(GetParam());
    for (int turn = 0; turn < 2; ++turn) {  // the shapes are new, then known
        for (std::size_t bytes = 16; bytes <= 300; ++bytes) {
            const std::vector<std::uint8_t> frame = make_frame(pair.a, bytes);
            std::vector<std::uint8_t> sealed(frame.size() + 80, 0);
            std::uint8_t* const bth = sealed.data() + pair.a.lower_bytes();
            std::memcpy(bth, frame.data() + pair.a.lower_bytes(), bytes - 4);
            for (int time = 0; time < 2; ++time) {
                pair.a.seal(bth, static_cast<std::uint16_t>(bytes));
                ASSERT_EQ(std::memcmp(sealed.data(), frame.data(), frame.size()), 0) << bytes;
                ASSERT_EQ(pair.b.judge_arrival(sealed.data(), frame.size()), Path::Arrival::Whole) << bytes;
                ASSERT_EQ(pair.b.judge_arrival(sealed.data(), frame.size() + 1), Path::Arrival::Whole) << "padded";
                ASSERT_EQ(pair.b.judge_arrival(sealed.data(), frame.size() - 1), Path::Arrival::NoMatch) << bytes;
            }
        }
    }
}

TEST_P(PathTest, AKnownShapeLetsNoFlippedBitPass) {
    Pair pair = make_pair(GetParam());
    for (const std::size_t bytes : {std::size_t{68}, std::size_t{72}, std::size_t{104}}) {
        std::vector<std::uint8_t> frame = make_frame(pair.a, bytes);
        const std::size_t frame_bytes = frame.size();
        frame.resize(frame_bytes + 80, 0);
        for (std::size_t at = 0; at < frame_bytes; ++at) {
            const std::size_t lower = pair.b.lower_bytes();
            const bool free = !GetParam() && ((at > 14 && at < 18) || at == 21);
            for (std::uint8_t bit = 1; bit != 0; bit = static_cast<std::uint8_t>(bit << 1U)) {
                ASSERT_EQ(pair.b.judge_arrival(frame.data(), frame_bytes), Path::Arrival::Whole);
                frame[at] ^= bit;
                const Path::Arrival arrival = pair.b.judge_arrival(frame.data(), frame_bytes);
                const bool traffic_class = !GetParam() && at == 14 && bit < 16;
                if (at >= 6 && at < 12) {
                    EXPECT_EQ(arrival, Path::Arrival::WholeFromElsewhere) << at;
                } else if (free || traffic_class || at == lower + 4) {
                    EXPECT_EQ(arrival, Path::Arrival::Whole) << at;
                } else {
                    EXPECT_EQ(arrival, at < lower ? Path::Arrival::NoMatch : Path::Arrival::BadIcrc) << at;
                }
                frame[at] ^= bit;
            }
        }
    }
}

TEST_P(PathTest, WhatArrivedIsDescribed) {
    Pair pair = make_pair(GetParam());
    const std::size_t lower = pair.b.lower_bytes();
    for (const std::size_t bytes : {std::size_t{16}, std::size_t{68}, std::size_t{300}}) {
        std::vector<std::uint8_t> frame = make_frame(pair.a, bytes);
        const std::size_t frame_bytes = frame.size();
        frame.resize(frame_bytes + 80, 0);
        for (const bool damaged : {false, true, false}) {
            for (int time = 0; time < 2; ++time) {
                PacketRef packet;
                packet.cookie = &pair;
                packet.ip_id = 7;
                frame[frame_bytes - 1] ^= damaged ? 1U : 0U;
                const Path::Arrival arrival = pair.b.judge_arrival(frame.data(), frame_bytes, packet);
                frame[frame_bytes - 1] ^= damaged ? 1U : 0U;
                EXPECT_EQ(arrival, damaged ? Path::Arrival::BadIcrc : Path::Arrival::Whole);
                EXPECT_EQ(packet.icrc_ok, !damaged);
                EXPECT_EQ(packet.data, frame.data() + lower);
                EXPECT_EQ(packet.path, &pair.b);
                EXPECT_EQ(packet.cookie, &pair);
                EXPECT_EQ(packet.len, bytes);
                EXPECT_EQ(packet.ip_id, 0);
                EXPECT_EQ(packet.ecn, 0);
            }
        }
        if (!GetParam()) {  // a router marks congestion; IPv4 would need another checksum
            frame[15] |= 0x30U;
            PacketRef packet;
            EXPECT_EQ(pair.b.judge_arrival(frame.data(), frame_bytes, packet), Path::Arrival::Whole);
            EXPECT_EQ(packet.ecn, 3);
        }
    }
}

TEST_P(PathTest, WhateverItsTrafficClassADatagramIsOfThisPath) {
    Pair pair = make_pair(GetParam());
    constexpr std::array<std::uint8_t, 8> kSeen{0x6a, 0x6b, 0x6a, 0x00, 0x69, 0x6b, 0x6b, 0xff};
    for (const std::uint8_t traffic_class : kSeen) {
        pair.a.set_traffic_class(traffic_class);
        for (const std::size_t bytes : {std::size_t{16}, std::size_t{104}, std::size_t{1040}}) {
            std::vector<std::uint8_t> frame = make_frame(pair.a, bytes);
            const std::size_t frame_bytes = frame.size();
            const std::uint8_t* const ip = frame.data() + 14;
            EXPECT_EQ(GetParam() ? ip[1] : ((ip[0] << 4U) | (ip[1] >> 4U)) & 0xff, traffic_class);
            frame.resize(frame_bytes + 80, 0);
            pair.a.seal(frame.data() + pair.a.lower_bytes(), static_cast<std::uint16_t>(bytes));
            for (int time = 0; time < 2; ++time) {
                PacketRef packet;
                ASSERT_EQ(pair.b.judge_arrival(frame.data(), frame_bytes, packet), Path::Arrival::Whole);
                EXPECT_EQ(packet.path, &pair.b);
                EXPECT_EQ(packet.ecn, traffic_class & 3U);
                frame[frame_bytes - 1] ^= 1U;
                EXPECT_EQ(pair.b.judge_arrival(frame.data(), frame_bytes, packet), Path::Arrival::BadIcrc);
                frame[frame_bytes - 1] ^= 1U;
            }
        }
    }
}

TEST_P(PathTest, WhatAPathReceivedIsDescribedWithTheBitsThatItHad) {
    Pair pair = make_pair(GetParam());
    pair.b.set_traffic_class(2);  // of packets that b sends
    for (const std::uint8_t ecn : std::array<std::uint8_t, 3>{0, 1, 3}) {
        std::vector<std::uint8_t> lower(pair.b.lower_bytes());
        pair.b.describe_lower_headers(Direction::Receive, lower.data(), 104, 0, ecn);
        EXPECT_EQ(GetParam() ? lower[15] : lower[15] >> 4U, ecn);
    }
}

TEST_P(PathTest, TheSameEthernetAddressesAgainChangeNothing) {
    Pair pair = make_pair(GetParam());
    const net::MacAddress local{{2, 0, 0, 0, 1, 1}};
    const net::MacAddress remote{{2, 0, 0, 0, 1, 2}};
    const net::MacAddress other{{2, 0, 0, 0, 1, 3}};
    EXPECT_TRUE(pair.a.resolve(local, remote));
    EXPECT_FALSE(pair.a.resolve(local, remote));
    EXPECT_TRUE(pair.a.resolve(local, other));
    EXPECT_TRUE(pair.a.resolve(other, other));
    pair.a.unresolve();
    EXPECT_TRUE(pair.a.resolve(other, other));
    EXPECT_TRUE(pair.a.resolved());
}

TEST_P(PathTest, NoShapeIsKnownBeforeTheFirstDatagram) {
    Pair pair = make_pair(GetParam());
    const std::vector<std::uint8_t> zeros(256, 0);
    for (std::size_t bytes = 0; bytes <= 128; ++bytes) {
        EXPECT_EQ(pair.b.judge_arrival(zeros.data(), bytes), Path::Arrival::NoMatch) << bytes;
    }
}

INSTANTIATE_TEST_SUITE_P(Families, PathTest, testing::Bool());

TEST(PathTable, RecyclesOnlyUnpinnedPathsAndRefusesWhenAllArePinned) {
    PathTable table(2);
    Path* first = table.intern(key_of("10.0.0.1", "10.0.0.2"));
    Path* second = table.intern(key_of("10.0.0.1", "10.0.0.3"));
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(table.intern(key_of("10.0.0.1", "10.0.0.2")), first);
    first->pin();
    EXPECT_EQ(table.intern(key_of("10.0.0.1", "10.0.0.4")), second);
    EXPECT_EQ(table.find(key_of("10.0.0.1", "10.0.0.3")), nullptr);
    second->pin();
    EXPECT_EQ(table.intern(key_of("10.0.0.1", "10.0.0.5")), nullptr);
    EXPECT_EQ(table.find(key_of("10.0.0.1", "10.0.0.2")), first);
}

TEST(PathTable, ATrafficClassIsWhatAPathSendsAndMakesNoOther) {
    PathTable table(4);
    PathKey key = key_of("10.0.0.1", "10.0.0.2");
    Path* const path = table.intern(key);
    EXPECT_EQ(path->key().traffic_class, 0x68);
    key.traffic_class = 0;  // as in an arrived datagram
    EXPECT_EQ(table.intern(key), path);
    EXPECT_EQ(table.find(key), path);
    EXPECT_EQ(path->key().traffic_class, 0x68);
    key.traffic_class = 2;
    EXPECT_EQ(table.intern(key), path);
    EXPECT_EQ(path->key().traffic_class, 2);
    EXPECT_EQ(table.size(), 1U);

    table.set_traffic_class(1);
    key.traffic_class = 0;
    key.udp_source_port = 7;
    EXPECT_EQ(table.intern(key)->key().traffic_class, 1);
    key.udp_source_port = 8;
    key.traffic_class = 3;
    EXPECT_EQ(table.intern(key)->key().traffic_class, 3);
}

}  // namespace
}  // namespace cairn::port
