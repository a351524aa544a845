// The shards that a shard of a file system accepts as peers, and the hosts that it refuses.
#include <gtest/gtest.h>

#include <functional>

#include "fs/daemon/peer_links.hpp"
#include "tests/unit/fs_daemon/nodes_fixture.hpp"
#include "tests/unit/fs_daemon/stranger.hpp"

namespace cairn::fs {
namespace {

using test::kAddresses;
using test::kNodesKey;
using test::links_of;
using test::Machine;
using test::Node;
using test::Stranger;

// The accepting shard.
class AcceptingTest : public test::NodesTest {
protected:
    void expect_stranger(Stranger& stranger, std::uint64_t strangers = 1) {
        wire.pass(milliseconds(50));
        EXPECT_TRUE(stranger.is_out());
        EXPECT_FALSE(one->has(0));
        EXPECT_TRUE(one->lives.empty());
        EXPECT_EQ(one->counted(PeerCounter::Strangers), strangers);
    }

    std::unique_ptr<Node> one = node(1);
};

TEST_F(AcceptingTest, WhoHasTheKeyComesInByThreeSteps) {
    Stranger peer(wire);
    EXPECT_TRUE(peer.greet());
    const auto theirs = peer.prove(peer.proof());
    ASSERT_TRUE(theirs.has_value());
    EXPECT_TRUE(PeerProver(kNodesKey).is_proof(PeerSide::Accepting, peer.nonces, *theirs));
    EXPECT_EQ(theirs->facts.from, 1U);
    EXPECT_EQ(theirs->facts.to, 0U);
    EXPECT_FALSE(one->has(0));  // until the other one confirms this proof
    EXPECT_TRUE(peer.ask(PeerCall::Ready, {0}).has_value());
    EXPECT_TRUE(one->has(0));
}

TEST_F(AcceptingTest, AWrongProofIsNone) {
    Stranger stranger(wire);
    ASSERT_TRUE(stranger.greet());
    EXPECT_FALSE(stranger.prove(stranger.proof(SipKey{2, 1})).has_value());
    expect_stranger(stranger);
    EXPECT_TRUE(was_said("did not prove"));
}

TEST_F(AcceptingTest, BytesThatAreNoProofAreNone) {
    Stranger stranger(wire);
    ASSERT_TRUE(stranger.greet());
    std::vector<std::uint8_t> bytes = peer_bytes_of(stranger.proof());
    bytes.pop_back();
    EXPECT_FALSE(stranger.ask(PeerCall::Prove, bytes).has_value());
    expect_stranger(stranger);
}

// An honest shard's messages in one connection are worthless in the next one.
TEST_F(AcceptingTest, AReplayedProofIsNone) {
    Stranger peer(wire);
    ASSERT_TRUE(peer.greet());
    const PeerProof heard = peer.proof();
    ASSERT_TRUE(peer.prove(heard).has_value());
    Stranger stranger(wire, "10.0.0.9", 77);
    ASSERT_TRUE(stranger.greet());  // with the same nonce
    EXPECT_FALSE(stranger.prove(heard).has_value());
    expect_stranger(stranger);
}

// The node's own proofs are worthless, too.
TEST_F(AcceptingTest, AReflectedProofIsNone) {
    Stranger stranger(wire);
    ASSERT_TRUE(stranger.greet());
    EXPECT_FALSE(stranger.prove(stranger.proof(kNodesKey, PeerSide::Accepting)).has_value());
    expect_stranger(stranger);
}

TEST_F(AcceptingTest, NoncesAreDrawnForEachConnection) {
    Stranger first(wire);
    Stranger second(wire, "10.0.0.9", 77);
    ASSERT_TRUE(first.greet() && second.greet());
    EXPECT_NE(first.nonces.accepting, second.nonces.accepting);
    EXPECT_NE(first.nonces.accepting, PeerNonce{});
}

TEST_F(AcceptingTest, StepsInAnotherOrderAreNone) {
    const std::vector<std::function<void(Stranger&)>> orders{
        [](Stranger& each) { EXPECT_FALSE(each.prove(each.proof()).has_value()); },
        [](Stranger& each) { EXPECT_FALSE(each.ask(PeerCall::Ready, {0}).has_value()); },
        [](Stranger& each) { EXPECT_TRUE(each.greet() && !each.greet()); },
        [](Stranger& each) { EXPECT_TRUE(each.greet() && !each.ask(PeerCall::Ready, {0})); },
        [](Stranger& each) {
            EXPECT_TRUE(each.greet() && each.prove(each.proof()));
            EXPECT_FALSE(each.prove(each.proof()).has_value());
        },
        [](Stranger& each) { EXPECT_TRUE(each.greet() && each.prove(each.proof()) && !each.greet()); },
    };
    for (std::size_t i = 0; i != orders.size(); ++i) {
        SCOPED_TRACE(i);
        Stranger stranger(wire, "10.0.0.9", 50 + i);
        orders[i](stranger);
        expect_stranger(stranger, i + 1);
        wire.remove(stranger);
    }
}

TEST_F(AcceptingTest, AProvenShardThatBeginsAnewIsLost) {
    Stranger peer(wire);
    ASSERT_TRUE(peer.enter());
    ASSERT_TRUE(one->has(0));
    EXPECT_FALSE(peer.ask(PeerCall::Ready, {0}).has_value());
    EXPECT_FALSE(one->has(0));
    EXPECT_EQ(one->lost, std::vector<ShardNumber>{0});
}

TEST_F(AcceptingTest, AGreetingOfAnotherKindIsNone) {
    const std::vector<std::function<void(PeerGreeting&)>> changes{
        [](PeerGreeting& each) { each.magic ^= 1U; },   [](PeerGreeting& each) { ++each.version; },
        [](PeerGreeting& each) { each.to = 0; },  // names another shard
        [](PeerGreeting& each) { each.from = 1; },  // claims to be this one
        [](PeerGreeting& each) { each.from = 2; },  // not a shard of the cluster
        [](PeerGreeting& each) { each.from = 0xffff; },
    };
    for (std::size_t i = 0; i != changes.size(); ++i) {
        SCOPED_TRACE(i);
        Stranger stranger(wire, "10.0.0.9", 50 + i);
        PeerGreeting greeting = Stranger::greeting();
        changes[i](greeting);
        EXPECT_FALSE(stranger.greet(greeting));
        expect_stranger(stranger, i + 1);
        wire.remove(stranger);
    }
    EXPECT_TRUE(was_said("shard 1 does not go together with a stranger"));
}

// Otherwise two connections would be made: the shard with the lower number connects.
TEST_F(AcceptingTest, AShardWithAHigherNumberDoesNotConnect) {
    Node middle(links_of(1, 3));
    wire.remove(*one);
    wire.add(middle);
    Stranger stranger(wire, kAddresses[2], 7);
    PeerGreeting greeting = Stranger::greeting();
    greeting.from = 2;
    EXPECT_FALSE(stranger.greet(greeting));
    EXPECT_EQ(middle.counted(PeerCounter::Strangers), 1U);
}

// Shards of one process do not talk over the network.
TEST_F(AcceptingTest, AShardOfTheSameMachineDoesNotConnect) {
    PeerLinkConfig config = links_of(1);
    config.cluster.local_shards = 2;
    config.facts.from = 3;
    config.facts.shards = 4;
    Node third(config);
    wire.remove(*one);
    wire.add(third);
    Stranger stranger(wire, "10.0.0.9", 77);
    stranger.session = stranger.knock(kAddresses[1], wire.now, PeerLinkConfig::kFirstPort + 1);
    for (const ShardNumber from : {ShardNumber{1}, ShardNumber{2}}) {  // shard 2 is at the other machine
        EXPECT_EQ(stranger.greet({.from = from, .to = 3, .nonce = {5, 6}}), from == 2);
        stranger.session = stranger.knock(kAddresses[1], wire.now, PeerLinkConfig::kFirstPort + 1);
    }
    EXPECT_EQ(third.counted(PeerCounter::Strangers), 1U);
}

TEST_F(AcceptingTest, WhoSaysNothingIsNotAwaitedForLong) {
    Stranger silent(wire);
    EXPECT_LE(one->links.next_deadline(), wire.now + seconds(2));
    wire.pass(milliseconds(1900));
    EXPECT_FALSE(silent.is_out());
    wire.pass(milliseconds(200));
    expect_stranger(silent);
    EXPECT_EQ(one->endpoint->sessions_open(), 0U);
    EXPECT_EQ(one->links.next_deadline(), Instant::never());
}

// The same is true of a peer that stops halfway.
TEST_F(AcceptingTest, WhoStopsBeforeTheLastStepIsNotAwaitedForLong) {
    Stranger stranger(wire);
    ASSERT_TRUE(stranger.greet() && stranger.prove(stranger.proof()));
    wire.pass(milliseconds(2100));
    expect_stranger(stranger);
}

TEST_F(AcceptingTest, OfManyStrangersTheOldestMakesRoomAndAPeerGetsIn) {
    Stranger crowd(wire, "10.0.0.9", 77);  // in the first connection
    for (std::uint64_t i = 1; i != 40; ++i) {
        crowd.connect();
        EXPECT_EQ(one->counted(PeerCounter::Strangers),
                  i < PeerLinkConfig::kMostStrangers ? 0 : i + 1 - PeerLinkConfig::kMostStrangers);
    }
    const auto zero = node(0);
    ASSERT_TRUE(wire.pass_until([&] { return one->has(0); }, milliseconds(500)));
    for (int i = 0; i != 20; ++i) {
        crowd.connect();
    }
    EXPECT_TRUE(one->has(0));  // accepted peers stay
    EXPECT_TRUE(one->lost.empty());
    wire.pass(seconds(3));
    EXPECT_EQ(one->links.next_deadline(), Instant::never());  // no peer is waited for
}

// A life is a random number of the peer: any value may come.
TEST_F(AcceptingTest, APeerOfLifeZeroIsLostAsAnyOther) {
    Stranger peer(wire);
    peer.facts.life = 0;
    ASSERT_TRUE(peer.enter());
    ASSERT_TRUE(one->has(0));
    peer.endpoint->disconnect(peer.session, wire.now);
    wire.pass(seconds(3));
    EXPECT_FALSE(one->has(0));
    EXPECT_EQ(one->lost, std::vector<ShardNumber>{0});
}

// Connections that are closing leave room for those that a shard makes itself.
TEST_F(AcceptingTest, ManyStrangersDoNotKeepAShardFromConnecting) {
    const auto two = std::make_unique<Node>(links_of(2, 3));
    Node middle(links_of(1, 3));
    wire.remove(*one);
    wire.add(middle);
    wire.add(*two);
    Stranger crowd(wire, "10.0.0.9", 77);
    const auto come = [&] {  // and never answers again
        crowd.port.fate = [](std::uint64_t) { return 1; };
        crowd.connect();
        crowd.port.fate = [](std::uint64_t) { return 0; };
        wire.pass(milliseconds(1));
    };
    for (int i = 0; i != 40; ++i) {
        come();
    }
    ASSERT_TRUE(middle.has(2));
    middle.links.lose(2);
    bool was_found = false;
    for (int i = 0; i != 200 && !was_found; ++i) {
        come();
        was_found = middle.has(2);
    }
    EXPECT_TRUE(was_found);
}

}  // namespace
}  // namespace cairn::fs
