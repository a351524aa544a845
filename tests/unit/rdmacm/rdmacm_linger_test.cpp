// Requests between two listeners of a service.
#include <gtest/gtest.h>

#include "lib/rdmacm/linger.hpp"

namespace cairn::rdmacm {
namespace {

constexpr Instant kStart{1'000'000'000};
const Service kCalls{cm::ServiceKind::Connections, wire::ServiceId{1}};
const Service kQuestions{cm::ServiceKind::Datagrams, wire::ServiceId{1}};

cm::Event request(std::uint32_t id) {
    cm::Requested requested;
    requested.id = cm::ConnectionId{id};
    return requested;
}

TEST(RdmacmLingerTest, OnlyAServiceThatLingersHoldsRequests) {
    Linger linger;
    EXPECT_FALSE(linger.hold(kCalls, request(1)));
    linger.begin(kCalls, kStart);
    EXPECT_TRUE(linger.hold(kCalls, request(1)));
    EXPECT_TRUE(linger.hold(kCalls, request(2)));
    EXPECT_FALSE(linger.hold(kQuestions, request(3)));
    std::vector<cm::Event> held;
    EXPECT_FALSE(linger.end(kQuestions, held));
    EXPECT_TRUE(linger.end(kCalls, held));
    ASSERT_EQ(held.size(), 2U);
    EXPECT_EQ(std::get<cm::Requested>(held[0]).id, cm::ConnectionId{1});
    EXPECT_EQ(std::get<cm::Requested>(held[1]).id, cm::ConnectionId{2});
    EXPECT_FALSE(linger.hold(kCalls, request(4)));
}

TEST(RdmacmLingerTest, EachServiceHasItsTime) {
    Linger linger;
    EXPECT_EQ(linger.next_deadline(), Instant::never());
    linger.begin(kCalls, kStart);
    linger.begin(kQuestions, kStart + milliseconds(1));
    EXPECT_EQ(linger.next_deadline(), kStart + Linger::kFor);
    EXPECT_EQ(linger.find_due(kStart + Linger::kFor - nanoseconds(1)), nullptr);
    ASSERT_NE(linger.find_due(kStart + Linger::kFor), nullptr);
    EXPECT_EQ(*linger.find_due(kStart + Linger::kFor), kCalls);
    std::vector<cm::Event> held;
    EXPECT_TRUE(linger.end(kCalls, held));
    EXPECT_EQ(linger.find_due(kStart + Linger::kFor), nullptr);
    EXPECT_EQ(linger.next_deadline(), kStart + milliseconds(1) + Linger::kFor);
}

TEST(RdmacmLingerTest, PeersCannotFillTheMemory) {
    Linger linger;
    linger.begin(kCalls, kStart);
    for (std::uint32_t i = 0; i < Linger::kMostHeld; ++i) {
        EXPECT_TRUE(linger.hold(kCalls, request(i)));
    }
    EXPECT_FALSE(linger.hold(kCalls, request(77)));
}

}  // namespace
}  // namespace cairn::rdmacm
