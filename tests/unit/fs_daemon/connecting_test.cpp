// The answers that a connecting shard requires of the host at its peer's address.
#include <gtest/gtest.h>

#include <functional>

#include "fs/daemon/peer_links.hpp"
#include "tests/unit/fs_daemon/nodes_fixture.hpp"

namespace cairn::fs {
namespace {

using test::kAddresses;
using test::kNodesKey;
using test::links_of;
using test::Machine;
using test::Node;

// The connecting shard: the machine that it connects to answers by hand.
class ConnectingTest : public test::NodesTest {
protected:
    ConnectingTest() {
        wire.add(host);
        EXPECT_TRUE(host.endpoint->listen(PeerLinkConfig::kFirstPort).ok());
        host.endpoint->set_guest_callback(
            [](void* self, SessionId session, copyrpc::SessionEvent) {
                static_cast<ConnectingTest*>(self)->guests.push_back(session);
            },
            this);
        for (const PeerCall what : {PeerCall::Greet, PeerCall::Prove, PeerCall::Ready}) {
            host.endpoint->set_handler(
                static_cast<std::uint8_t>(what),
                [](void* self, const copyrpc::Request& request) {
                    static_cast<ConnectingTest*>(self)->on_call(request);
                },
                this);
        }
    }
    void on_call(const copyrpc::Request& request) {
        if (const auto greeting = parse_peer<PeerGreeting>(request.payload)) {
            ++greetings;
            connecting.push_back(greeting->nonce);
            nonces = {greeting->nonce, own.nonce};
            answer(request, peer_bytes_of(own));
        } else if (const auto proof = parse_peer<PeerProof>(request.payload)) {
            is_proven = PeerProver(kNodesKey).is_proof(PeerSide::Connecting, nonces, *proof);
            answer(request, peer_bytes_of(PeerProof{facts, PeerProver(key).prove(side, nonces, facts)}));
        } else {
            ++readies;
            answer(request, {});
        }
    }
    void answer(const copyrpc::Request& request, std::vector<std::uint8_t> bytes) {
        if (cuts && !bytes.empty()) {
            bytes.pop_back();
        }
        if (answers) {
            EXPECT_TRUE(request.endpoint.answer(request.handle, bytes, request.now));
        } else {
            kept.push_back(request.keep());
        }
    }
    static PeerFacts facts_of_one() {
        PeerFacts facts = links_of(1).facts;
        facts.to = 0;
        return facts;
    }

    Machine host{kAddresses[1], 22};
    PeerGreeting own{.from = 1, .to = 0, .nonce = {7, 8}};
    PeerFacts facts = facts_of_one();
    SipKey key = kNodesKey;
    PeerSide side = PeerSide::Accepting;
    PeerNonces nonces{};
    std::vector<PeerNonce> connecting;
    std::vector<SessionId> guests;
    bool cuts = false;
    bool answers = true;
    bool is_proven = false;
    int greetings = 0;
    int readies = 0;
    std::vector<rpc::KeptRequest> kept;
    std::unique_ptr<Node> zero = node(0);
};

TEST_F(ConnectingTest, AHostWithTheKeyIsAPeer) {
    wire.pass(milliseconds(100));
    EXPECT_TRUE(zero->has(1));
    EXPECT_TRUE(is_proven);
    EXPECT_EQ(readies, 1);
}

TEST_F(ConnectingTest, AHostWithoutTheKeyIsNone) {
    key = SipKey{8, 8};
    wire.pass(seconds(1));
    EXPECT_FALSE(zero->has(1));
    EXPECT_EQ(readies, 0);
    EXPECT_EQ(zero->counted(PeerCounter::Strangers), static_cast<std::uint64_t>(greetings));
    EXPECT_TRUE(was_said("it has another key"));
}

// The host does not know the key, and sends back the node's own kind of proof.
TEST_F(ConnectingTest, AProofOfTheOtherDirectionIsNone) {
    side = PeerSide::Connecting;
    wire.pass(milliseconds(300));
    EXPECT_FALSE(zero->has(1));
    EXPECT_EQ(readies, 0);
}

TEST_F(ConnectingTest, EachConnectionHasANonceOfItsOwn) {
    key = SipKey{8, 8};
    wire.pass(seconds(2));
    ASSERT_GE(connecting.size(), 3U);
    std::ranges::sort(connecting);
    EXPECT_EQ(std::ranges::adjacent_find(connecting), connecting.end());
}

TEST_F(ConnectingTest, AHostOfAnotherVersionIsNone) {
    for (const auto& change : std::vector<std::function<void()>>{[&] { ++own.version; }, [&] { own = {.magic = 1}; },
                                                                 [&] {
                                                                     own = {};
                                                                     cuts = true;
                                                                 }}) {
        change();
        const int before = greetings;
        ASSERT_TRUE(wire.pass_until([&] { return greetings > before + 1; }));
        EXPECT_FALSE(zero->has(1));
        EXPECT_FALSE(is_proven);  // nothing was proven to the host
    }
    EXPECT_TRUE(was_said("it is of another version"));
}

TEST_F(ConnectingTest, AHostOfOtherFactsIsNone) {
    facts.shards = 7;
    wire.pass(milliseconds(300));
    EXPECT_FALSE(zero->has(1));
    EXPECT_EQ(readies, 0);
    EXPECT_GE(zero->counted(PeerCounter::Different), 1U);
    EXPECT_TRUE(was_said("number of shards: 2 here, 7 there"));
}

// Another shard of the cluster answers at the address of shard 1.
TEST_F(ConnectingTest, AnotherShardIsNotThisOne) {
    facts.from = 0;
    wire.pass(milliseconds(300));
    EXPECT_FALSE(zero->has(1));
    EXPECT_GE(zero->counted(PeerCounter::Different), 1U);
}

TEST_F(ConnectingTest, AHostThatAnswersNothingIsTriedAgain) {
    answers = false;
    ASSERT_TRUE(wire.pass_until([&] { return greetings == 3; }));
    EXPECT_GE(zero->counted(PeerCounter::Strangers), 2U);
    EXPECT_TRUE(was_said("it proved nothing in time"));
    answers = true;
    kept.clear();
    ASSERT_TRUE(wire.pass_until([&] { return zero->has(1); }));
}

// A shard that has connected accepts no greeting: only the other one has to prove its identity.
TEST_F(ConnectingTest, AHostDoesNotGreet) {
    wire.pass(milliseconds(100));
    ASSERT_TRUE(zero->has(1));
    const std::uint64_t number =
        host.call(guests.back(), PeerCall::Greet, peer_bytes_of(PeerGreeting{.from = 1, .to = 0}), wire.now);
    wire.pass(milliseconds(100));
    EXPECT_TRUE(host.has_failed(number));
    EXPECT_TRUE(zero->lost.empty());  // otherwise it would soon be found again
    EXPECT_TRUE(zero->has(1));
}

}  // namespace
}  // namespace cairn::fs
