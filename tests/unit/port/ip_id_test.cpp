// The IPv4 ID in the ICRC, compared with the reference: its effect, and the conclusion from a difference.
#include "lib/port/ip_id.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "lib/port/path.hpp"
#include "lib/wire/icrc.hpp"

namespace cairn::port {
namespace {

// Makes the IPv4 header ... payload of a datagram with this ID, without its ICRC.
std::vector<std::uint8_t> make_packet(std::uint16_t udp_payload_bytes, std::uint16_t id) {
    Path path({net::IpAddress::parse("10.1.0.1").value(), net::IpAddress::parse("10.1.0.2").value(), 4791, 0});
    std::vector<std::uint8_t> frame(Path::kLowerBytesV4 + udp_payload_bytes);
    for (std::size_t i = Path::kLowerBytesV4; i < frame.size(); ++i) {
        frame[i] = static_cast<std::uint8_t>(i * 31);
    }
    path.describe_lower_headers(Direction::Transmit, frame.data(), udp_payload_bytes, id, 0);
    return {frame.begin() + 14, frame.end() - 4};
}

TEST(IpIdDeltas, AgreeWithTheReferenceForEveryLengthAndId) {
    IpIdDeltas deltas;
    std::mt19937 random(1);
    for (std::uint16_t bytes = 16; bytes <= IpIdDeltas::kMaxUdpPayloadBytes;
         bytes = static_cast<std::uint16_t>(bytes + 52)) {
        const std::uint32_t zero = wire::icrc_reference(make_packet(bytes, 0));
        for (int i = 0; i < 20; ++i) {
            const auto id = static_cast<std::uint16_t>(random());
            const std::uint32_t difference = wire::icrc_reference(make_packet(bytes, id)) ^ zero;
            EXPECT_EQ(deltas.delta(bytes, id), difference) << bytes << " " << id;
            EXPECT_EQ(deltas.solve(bytes, difference), id) << bytes;
        }
    }
}

TEST(IpIdDeltas, NoIdMakesMostDifferences) {
    IpIdDeltas deltas;
    std::mt19937 random(2);
    int solved = 0;
    for (int i = 0; i < 100'000; ++i) {
        solved += deltas.solve(68, static_cast<std::uint32_t>(random())).has_value() ? 1 : 0;
    }
    EXPECT_LT(solved, 20) << "one in 65,536";
    EXPECT_EQ(deltas.solve(68, 0), 0);
}

TEST(IpIdHistory, BelievesTheFirstAndThoseNearTheLast) {
    IpIdHistory history;
    EXPECT_TRUE(history.judge(65'530, Instant{}));
    EXPECT_TRUE(history.judge(65'531, Instant{}));
    EXPECT_TRUE(history.judge(3, Instant{})) << "around the end";
    EXPECT_TRUE(history.judge(65'535, Instant{})) << "reordered";
    EXPECT_FALSE(history.judge(5'000, Instant{}));
    EXPECT_TRUE(history.judge(1, Instant{})) << "one doubtful packet changes nothing";
}

TEST(IpIdHistory, TheWindowGrowsWithTime) {
    IpIdHistory history;
    EXPECT_TRUE(history.judge(100, Instant{}));
    EXPECT_FALSE(history.judge(1'100, Instant{} + milliseconds(1)));
    history = {};
    EXPECT_TRUE(history.judge(100, Instant{}));
    EXPECT_TRUE(history.judge(1'100, Instant{} + milliseconds(600)));
}

TEST(IpIdHistory, TwoThatAgreeStartAnew) {
    IpIdHistory history;
    EXPECT_TRUE(history.judge(100, Instant{}));
    EXPECT_FALSE(history.judge(20'000, Instant{}));
    EXPECT_TRUE(history.judge(20'001, Instant{}));
    EXPECT_TRUE(history.judge(20'002, Instant{}));
    EXPECT_TRUE(history.judge(101, Instant{})) << "the counter before may have been the peer's";
    EXPECT_FALSE(history.judge(10'000, Instant{}));
}

TEST(IpIdHistory, WhoForgesThePeersAddressDoesNotDisplaceThePeersCounter) {
    IpIdHistory history;
    EXPECT_TRUE(history.judge(100, Instant{}));
    std::uint16_t peers = 100;
    std::uint16_t forged = 5'000;
    for (std::int64_t i = 1; i < 1'000; ++i) {
        const Instant now = Instant{} + microseconds(i);
        for (int packets = 0; packets < 6; ++packets) {
            forged = static_cast<std::uint16_t>(forged + (packets % 2 == 0 ? 1'000 : 1));
            (void)history.judge(forged, now);
        }
        EXPECT_TRUE(history.judge(++peers, now)) << i;
    }
}

TEST(IpIdHistory, ACounterOfOldDoesNotLetAnyIdPassBesideANewOne) {
    IpIdHistory history;
    EXPECT_TRUE(history.judge(100, Instant{}));
    EXPECT_FALSE(history.judge(40'000, Instant{}));
    EXPECT_TRUE(history.judge(40'001, Instant{}));
    EXPECT_TRUE(history.judge(40'100, Instant{} + seconds(10)));
    EXPECT_FALSE(history.judge(15'000, Instant{} + seconds(10)));
}

}  // namespace
}  // namespace cairn::port
