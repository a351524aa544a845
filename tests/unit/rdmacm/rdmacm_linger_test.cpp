// Requests between two listeners of a service.
#include <gtest/gtest.h>

#include "lib/rdmacm/linger.hpp"

namespace cairn::rdmacm {
namespace {

constexpr Instant kStart{1'000'000'000};
const Service kOfConnections{cm::ServiceKind::Connections, wire::ServiceId{1}};
const Service kQuestions{cm::ServiceKind::Datagrams, wire::ServiceId{1}};

cm::Event request(std::uint32_t id) {
    cm::Requested requested;
    requested.id = cm::ConnectionId{id};
    return requested;
}

TEST(RdmacmLingerTest, OnlyAServiceThatLingersHoldsRequests) {
    Linger linger;
    EXPECT_FALSE(linger.hold(kOfConnections, request(1), kStart));
    linger.begin(kOfConnections, kStart);
    EXPECT_TRUE(linger.hold(kOfConnections, request(1), kStart));
    EXPECT_TRUE(linger.hold(kOfConnections, request(2), kStart));
    EXPECT_FALSE(linger.hold(kQuestions, request(3), kStart));
    std::vector<cm::Event> held;
    EXPECT_FALSE(linger.end(kQuestions, held));
    EXPECT_TRUE(linger.end(kOfConnections, held));
    ASSERT_EQ(held.size(), 2U);
    EXPECT_EQ(std::get<cm::Requested>(held[0]).id, cm::ConnectionId{1});
    EXPECT_EQ(std::get<cm::Requested>(held[1]).id, cm::ConnectionId{2});
    EXPECT_FALSE(linger.hold(kOfConnections, request(4), kStart));
}

TEST(RdmacmLingerTest, EachServiceHasItsTime) {
    Linger linger;
    EXPECT_EQ(linger.next_deadline(), Instant::never());
    linger.begin(kOfConnections, kStart);
    linger.begin(kQuestions, kStart + milliseconds(1));
    EXPECT_EQ(linger.next_deadline(), kStart + Linger::kFor);
    EXPECT_TRUE(linger.take_due(kStart + Linger::kFor - nanoseconds(1)).services.empty());
    EXPECT_TRUE(linger.has(kOfConnections));
    const Linger::Over over = linger.take_due(kStart + Linger::kFor);
    ASSERT_EQ(over.services.size(), 1U);
    EXPECT_EQ(over.services[0], kOfConnections);
    EXPECT_FALSE(linger.has(kOfConnections));
    EXPECT_TRUE(linger.has(kQuestions));
    EXPECT_EQ(linger.next_deadline(), kStart + milliseconds(1) + Linger::kFor);
}

TEST(RdmacmLingerTest, ARequestWaitsForAWhileOnly) {
    Linger linger;
    linger.begin(kOfConnections, kStart);
    EXPECT_TRUE(linger.hold(kOfConnections, request(1), kStart));
    EXPECT_TRUE(linger.hold(kOfConnections, request(2), kStart + Linger::kFor - nanoseconds(1)));
    EXPECT_EQ(linger.next_deadline(), kStart + Linger::kHolds);
    EXPECT_TRUE(linger.take_due(kStart + Linger::kHolds - nanoseconds(1)).requests.empty());
    const Linger::Over first = linger.take_due(kStart + Linger::kHolds);
    ASSERT_EQ(first.requests.size(), 1U);
    EXPECT_EQ(std::get<cm::Requested>(first.requests[0]).id, cm::ConnectionId{1});
    EXPECT_TRUE(first.services.empty());
    const Linger::Over last = linger.take_due(kStart + Linger::kFor);  // no request outlives its service
    EXPECT_EQ(last.requests.size(), 1U);
    EXPECT_EQ(last.services.size(), 1U);
}

TEST(RdmacmLingerTest, PeersCannotFillTheMemory) {
    Linger linger;
    linger.begin(kOfConnections, kStart);
    for (std::uint32_t i = 0; i < Linger::kMostHeld; ++i) {
        EXPECT_TRUE(linger.hold(kOfConnections, request(i), kStart));
    }
    EXPECT_FALSE(linger.hold(kOfConnections, request(77), kStart));
}

}  // namespace
}  // namespace cairn::rdmacm
