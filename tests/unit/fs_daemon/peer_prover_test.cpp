// The places of shards, and the proofs that two of them exchange.
#include "fs/daemon/peer_prover.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "fs/daemon/cluster.hpp"

namespace cairn::fs {
namespace {

constexpr SipKey kClusterKey{1, 2};
constexpr PeerNonces kNonces{{3, 4}, {5, 6}};

PeerFacts facts() {
    return {.from = 1, .to = 4, .nodes = 3, .shards = 6, .chunk_bytes = 1U << 20U, .table_epoch = 1, .life = 77};
}

// Returns the other shard's facts as they must be.
PeerFacts theirs() {
    PeerFacts other = facts();
    std::swap(other.from, other.to);
    other.life = 78;
    return other;
}

bool is_proof(const PeerProof& proof, PeerSide side = PeerSide::Connecting, const PeerNonces& nonces = kNonces) {
    return PeerProver(kClusterKey).is_proof(side, nonces, proof);
}

TEST(PeerProverTest, AProofHoldsForItsKeyNoncesDirectionAndFactsAlone) {
    const PeerProof proof{facts(), PeerProver(kClusterKey).prove(PeerSide::Connecting, kNonces, facts())};
    EXPECT_TRUE(is_proof(proof));
    EXPECT_FALSE(is_proof(proof, PeerSide::Accepting));
    EXPECT_FALSE(is_proof(proof, PeerSide::Connecting, {{3, 4}, {5, 7}}));
    EXPECT_FALSE(is_proof(proof, PeerSide::Connecting, {{3, 5}, {5, 6}}));
    EXPECT_FALSE(is_proof(proof, PeerSide::Connecting, {{5, 6}, {3, 4}}));
    EXPECT_FALSE(is_proof({facts(), PeerProver({1, 3}).prove(PeerSide::Connecting, kNonces, facts())}));
    EXPECT_FALSE(is_proof({facts(), PeerProver({0, 2}).prove(PeerSide::Connecting, kNonces, facts())}));
    EXPECT_FALSE(is_proof({facts(), {}}));
    for (std::size_t word = 0; word != proof.mac.size(); ++word) {
        PeerProof other = proof;
        other.mac[word] ^= 1U;
        EXPECT_FALSE(is_proof(other)) << word;
    }
    PeerProof other = proof;
    other.facts.from = 2;
    EXPECT_FALSE(is_proof(other));
    other = proof;
    other.facts.life = 0;
    EXPECT_FALSE(is_proof(other));
}

TEST(PeerProverTest, WhatDiffersIsNamed) {
    EXPECT_EQ(difference_of(facts(), theirs()), std::nullopt);
    const auto named = [](auto change) {
        PeerFacts other = theirs();
        change(other);
        return difference_of(facts(), other).value_or("");
    };
    EXPECT_EQ(named([](PeerFacts& other) { other.chunk_bytes = 65536; }), "chunk size: 1048576 here, 65536 there");
    EXPECT_EQ(named([](PeerFacts& other) { other.nodes = 2; }), "number of nodes: 3 here, 2 there");
    EXPECT_EQ(named([](PeerFacts& other) { other.shards = 3; }), "number of shards: 6 here, 3 there");
    EXPECT_NE(named([](PeerFacts& other) { other.spread = Spread::Koyama; }).find("placement"), std::string::npos);
    EXPECT_NE(named([](PeerFacts& other) { other.table_epoch = 2; }).find("epoch"), std::string::npos);
    EXPECT_NE(named([](PeerFacts& other) { other.from = 5; }).find("shard there"), std::string::npos);
    EXPECT_NE(named([](PeerFacts& other) { other.to = 0; }).find("shard here"), std::string::npos);
}

TEST(ClusterTest, NumbersInterleaveOverTheNodes) {
    const Cluster cluster = make_cluster({"192.0.2.1", "192.0.2.2", "192.0.2.3"}, {}, "192.0.2.2", 2).value();
    EXPECT_EQ(cluster.node, 1U);
    EXPECT_EQ(cluster.shards(), 6U);
    EXPECT_EQ(cluster.number_of(0), 1U);
    EXPECT_EQ(cluster.number_of(1), 4U);
    EXPECT_EQ(cluster.node_of(4), 1U);
    EXPECT_EQ(cluster.local_of(4), 1U);
    EXPECT_FALSE(cluster.is_remote(1));
    EXPECT_FALSE(cluster.is_remote(4));
    EXPECT_TRUE(cluster.is_remote(0));
    EXPECT_TRUE(cluster.is_remote(5));
    EXPECT_FALSE(cluster.is_remote(6));  // there is no such shard
}

TEST(ClusterTest, ADaemonWithoutNodesIsAlone) {
    const Cluster cluster = make_cluster({}, {}, "", 3).value();
    EXPECT_TRUE(cluster.is_alone());
    EXPECT_EQ(cluster.shards(), 3U);
    EXPECT_EQ(cluster.number_of(2), 2U);
}

TEST(ClusterTest, WhatIsWrongIsNamed) {
    const auto refusal = [](const std::vector<std::string>& nodes, std::optional<std::uint32_t> node,
                            const std::string& own, std::uint32_t shards = 1) {
        const auto made = make_cluster(nodes, node, own, shards);
        return made.ok() ? std::string() : made.error().text();
    };
    const std::vector<std::string> two{"192.0.2.1", "192.0.2.2"};
    EXPECT_NE(refusal({"192.0.2.1", "host"}, {}, "192.0.2.1").find("'host'"), std::string::npos);
    EXPECT_NE(refusal({"192.0.2.1", "0.0.0.0"}, {}, "192.0.2.1").find("0.0.0.0"), std::string::npos);
    EXPECT_NE(refusal({"192.0.2.1", "192.0.2.1"}, {}, "192.0.2.1").find("twice"), std::string::npos);
    EXPECT_NE(refusal(two, {}, "192.0.2.3").find("192.0.2.3"), std::string::npos);
    EXPECT_NE(refusal(two, 2, "192.0.2.1").find("--node 2"), std::string::npos);
    EXPECT_NE(refusal(two, 1, "192.0.2.1").find("192.0.2.2"), std::string::npos);
    EXPECT_NE(refusal(two, {}, "192.0.2.1", 4096).find("at most 4096"), std::string::npos);
    EXPECT_EQ(refusal(two, 1, "10.0.0.1"), "");  // at another address
}

}  // namespace
}  // namespace cairn::fs
