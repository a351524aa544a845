// The division of messages into packets, and the window of arrived packets.
#include "rpc/erpc/transfer.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace cairn::erpc {
namespace {

static_assert(packets_of(0, 1008) == 1 && packets_of(1008, 1008) == 1 && packets_of(1009, 1008) == 2);
static_assert(bytes_of_packet(1009, 1008, 0) == 1008 && bytes_of_packet(1009, 1008, 1) == 1);
static_assert(resolve_number(5, 3) == 5 && resolve_number(3, 5) == 3);
static_assert(resolve_number(2, 16'383) == 16'386 && resolve_number(16'380, 16'386) == 16'380);
static_assert(resolve_number(16'380, 5) == 16'380, "there are no numbers below 0");

TEST(Transfer, EveryByteOfAMessageIsInOnePacket) {
    for (const std::uint32_t packet_bytes : {240U, 1'008U, 4'080U}) {
        for (std::uint32_t bytes = 1; bytes < 20'000; bytes += 77) {
            std::uint32_t sum = 0;
            for (std::uint32_t i = 0; i < packets_of(bytes, packet_bytes); ++i) {
                const std::uint32_t part = bytes_of_packet(bytes, packet_bytes, i);
                ASSERT_GT(part, 0U);
                sum += part;
            }
            ASSERT_EQ(sum, bytes);
        }
    }
}

TEST(PacketWindow, AgreesWithASetOverRandomHistories) {
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
        std::mt19937 random(seed);
        PacketWindow window;
        std::set<std::uint32_t> seen;
        std::uint32_t next = 0;
        for (int step = 0; step < 2'000; ++step) {
            const std::uint32_t number = next + static_cast<std::uint32_t>(random() % 150) - std::min(next, 10U);
            const bool outside = number >= next + kWindowPackets;
            const bool known = seen.contains(number);
            const auto verdict = window.see(number);
            ASSERT_EQ(verdict, known     ? PacketWindow::Seen::Known
                               : outside ? PacketWindow::Seen::Outside
                                         : PacketWindow::Seen::New);
            if (!outside) {
                seen.insert(number);
            }
            while (seen.contains(next)) {
                ++next;
            }
            ASSERT_EQ(window.next(), next);
            ASSERT_EQ(window.end(), std::max(next, seen.empty() ? 0 : *seen.rbegin() + 1));
            const std::uint32_t limit = next + static_cast<std::uint32_t>(random() % 200);
            const auto below = std::distance(seen.lower_bound(next), seen.lower_bound(limit));
            ASSERT_EQ(window.seen_below(limit), static_cast<std::uint32_t>(below));
        }
    }
}

TEST(PacketWindow, MarksMoveWithTheirNumbers) {
    PacketWindow window;
    window.mark(5);
    window.mark(130);  // too far ahead to be kept
    for (std::uint32_t i = 0; i < 5; ++i) {
        EXPECT_EQ(window.see(i), PacketWindow::Seen::New);
        EXPECT_TRUE(window.marked(5));
        EXPECT_FALSE(window.marked(6));
    }
    EXPECT_EQ(window.see(5), PacketWindow::Seen::New);
    EXPECT_FALSE(window.marked(5)) << "seen";
    EXPECT_FALSE(window.marked(130));
}

TEST(ClientTransfer, CountsWhatHoldsACredit) {
    ClientTransfer transfer;
    transfer.request_packets = 10;
    transfer.sent = transfer.sent_most = 6;
    EXPECT_EQ(transfer.outstanding(), 6U);
    EXPECT_EQ(transfer.answered.see(3), PacketWindow::Seen::New);
    EXPECT_EQ(transfer.outstanding(), 5U);
    EXPECT_EQ(transfer.answered.see(0), PacketWindow::Seen::New);
    EXPECT_EQ(transfer.outstanding(), 4U);
    transfer.sent = transfer.answered.next();
    EXPECT_EQ(transfer.outstanding(), 0U);
    EXPECT_EQ(transfer.known_numbers(), 10U);
    transfer.response_packets = 4;
    EXPECT_EQ(transfer.known_numbers(), 13U);
}

}  // namespace
}  // namespace cairn::erpc
