// Connections to shards of other processes: how they are found, lost, and found again.
#include "fs/daemon/peer_links.hpp"

#include <gtest/gtest.h>

#include "tests/unit/fs_daemon/nodes_fixture.hpp"

namespace cairn::fs {
namespace {

using test::kAddresses;
using test::kNodesKey;
using test::Machine;

using PeerLinksTest = test::NodesTest;

TEST_F(PeerLinksTest, TwoShardsFindEachOtherOnce) {
    const auto zero = node(0);
    const auto one = node(1);
    wire.pass(seconds(1));
    using Lives = std::vector<std::pair<ShardNumber, std::uint64_t>>;
    EXPECT_EQ(zero->lives, (Lives{{1, 101}}));
    EXPECT_EQ(one->lives, (Lives{{0, 100}}));
    ASSERT_TRUE(zero->has(1) && one->has(0));
    EXPECT_EQ(zero->links.peer_of(*zero->links.session_of(1)), ShardNumber{1});
    EXPECT_EQ(one->links.peer_of(*one->links.session_of(0)), ShardNumber{0});
    EXPECT_EQ(zero->counted(PeerCounter::Found), 1U);
    EXPECT_EQ(one->counted(PeerCounter::Found), 1U);
    EXPECT_EQ(one->counted(PeerCounter::Strangers), 0U);
    EXPECT_EQ(zero->links.next_deadline(), Instant::never());
    EXPECT_EQ(one->links.next_deadline(), Instant::never());
    EXPECT_FALSE(zero->has(0));
    EXPECT_FALSE(zero->has(2));
    EXPECT_TRUE(said().empty());
    wire.pass(seconds(60));
    EXPECT_TRUE(zero->has(1) && one->has(0));
    EXPECT_TRUE(zero->lost.empty() && one->lost.empty());
}

TEST_F(PeerLinksTest, AnotherKeyKeepsBothOutAndBothSaySo) {
    const auto zero = node(0);
    const auto one = node(1, SipKey{1, 3});
    wire.pass(seconds(3));
    EXPECT_FALSE(zero->has(1) || one->has(0));
    EXPECT_TRUE(zero->lives.empty() && one->lives.empty());
    EXPECT_GE(one->counted(PeerCounter::Strangers), 2U);  // it is tried again
    EXPECT_TRUE(was_said("shard 0 does not go together with shard 1 at 10.0.0.2: it refuses our proof"));
    EXPECT_TRUE(was_said("shard 1 does not go together with shard 0 at 10.0.0.1: it did not prove the cluster's key"));
    EXPECT_TRUE(was_said("--key-file"));
}

TEST_F(PeerLinksTest, OtherFactsKeepBothOutAndBothSayWhich) {
    const auto zero = node(0);
    const auto one = node(1, kNodesKey, 64U << 10U);
    wire.pass(seconds(3));
    EXPECT_FALSE(zero->has(1) || one->has(0));
    EXPECT_GE(zero->counted(PeerCounter::Different), 2U);
    EXPECT_GE(one->counted(PeerCounter::Different), 2U);
    EXPECT_TRUE(was_said("chunk size: 1048576 here, 65536 there"));
    EXPECT_TRUE(was_said("chunk size: 65536 here, 1048576 there"));
}

TEST_F(PeerLinksTest, TheLogIsNotFilled) {
    const auto zero = node(0);
    const auto one = node(1, SipKey{1, 3});
    wire.pass(seconds(20));
    EXPECT_GE(one->counted(PeerCounter::Strangers), 10U);
    EXPECT_LE(said().size(), 42U);  // a line a second and node
}

TEST_F(PeerLinksTest, AbsentPeersAreTriedAgainMoreAndMoreSeldom) {
    const auto zero = node(0);
    const auto other = std::make_unique<Machine>(kAddresses[1], 5);  // no program listens there
    wire.add(*other);
    const auto tries_in = [&](Duration span) {
        const std::uint64_t before = other->port.sent();
        wire.pass(span);
        return other->port.sent() - before;
    };
    const std::uint64_t first = tries_in(seconds(1));
    (void)tries_in(seconds(5));
    const std::uint64_t later = tries_in(seconds(1));
    EXPECT_GE(first, 3U);
    EXPECT_LT(later, first);
    EXPECT_GE(tries_in(seconds(10)), 9U);  // it never gives up
    EXPECT_EQ(zero->counted(PeerCounter::Strangers), 0U);
    EXPECT_TRUE(said().empty());
}

TEST_F(PeerLinksTest, ARestartedPeerIsFoundInItsNewLife) {
    const auto zero = node(0);
    auto one = node(1);
    wire.pass(seconds(1));
    kill(one);
    ASSERT_TRUE(wire.pass_until([&] { return !zero->has(1); }));
    EXPECT_EQ(zero->lost, std::vector<ShardNumber>{1});
    EXPECT_EQ(zero->counted(PeerCounter::Lost), 1U);
    one = node(1, kNodesKey, 1U << 20U, 500);
    ASSERT_TRUE(wire.pass_until([&] { return zero->has(1) && one->has(0); }));
    EXPECT_EQ(zero->lives.back().second, 601U);
    EXPECT_EQ(zero->lives.size(), 2U);
}

// A peer's new connection comes before the old one is known to be dead.
TEST_F(PeerLinksTest, ANewerConnectionOfAPeerReplacesTheOldOne) {
    const auto one = node(1);
    auto zero = node(0);
    wire.pass(milliseconds(100));
    ASSERT_TRUE(one->has(0));
    const SessionId before = *one->links.session_of(0);
    kill(zero);
    zero = node(0, kNodesKey, 1U << 20U, 500);
    wire.pass(milliseconds(100));  // no peer has been silent for too long yet
    ASSERT_TRUE(one->has(0));
    EXPECT_NE(*one->links.session_of(0), before);
    EXPECT_EQ(one->lost, std::vector<ShardNumber>{0});
    ASSERT_EQ(one->lives.size(), 2U);
    EXPECT_EQ(one->lives.back().second, 600U);
    EXPECT_EQ(one->links.peer_of(before), std::nullopt);
    wire.pass(seconds(10));
    EXPECT_TRUE(one->has(0));
    EXPECT_EQ(one->lost.size(), 1U);
}

TEST_F(PeerLinksTest, WhoLeavesIsMissedAtOnce) {
    const auto zero = node(0);
    const auto one = node(1);
    wire.pass(seconds(1));
    one->links.leave(wire.now);
    wire.pass(milliseconds(20));
    EXPECT_FALSE(zero->has(1));
    EXPECT_EQ(zero->lost.size(), 1U);
}

TEST_F(PeerLinksTest, APeerThatIsGivenUpIsFoundAgain) {
    const auto zero = node(0);
    const auto one = node(1);
    wire.pass(seconds(1));
    zero->links.lose(1);
    EXPECT_FALSE(zero->has(1));
    EXPECT_EQ(zero->lost, std::vector<ShardNumber>{1});
    zero->links.lose(1);  // does nothing: it is lost already
    EXPECT_EQ(zero->lost.size(), 1U);
    ASSERT_TRUE(wire.pass_until([&] { return zero->has(1) && one->has(0); }));
    one->links.lose(0);  // the shard that does not connect
    ASSERT_TRUE(wire.pass_until([&] { return zero->lives.size() == 3 && one->has(0); }));
    EXPECT_EQ(one->lives.size(), 3U);
}

TEST_F(PeerLinksTest, ABreachEndsTheConnectionAndCounts) {
    const auto zero = node(0);
    const auto one = node(1);
    wire.pass(seconds(1));
    one->links.on_breach(*one->links.session_of(0));
    EXPECT_FALSE(one->has(0));
    EXPECT_EQ(one->counted(PeerCounter::Breaches), 1U);
    EXPECT_EQ(one->counted(PeerCounter::Strangers), 0U);
    one->links.on_breach(SessionId{999});  // an unknown session
    EXPECT_EQ(one->counted(PeerCounter::Breaches), 1U);
    ASSERT_TRUE(wire.pass_until([&] { return zero->has(1) && one->has(0); }));
}

}  // namespace
}  // namespace cairn::fs
