// Chunks that clients have left beyond files' ends.
#include <cerrno>

#include "fs/message/peers.hpp"
#include "fs/shard/sweeper.hpp"
#include "tests/unit/fs_shard/cluster_fixture.hpp"

namespace cairn::fs {
namespace {

using test::check_cluster;

class ClusterSweep : public ClusterTest {
protected:
    static constexpr std::uint32_t kBytes = 3000;

    void SetUp() override {
        name = name_at(kRoot, 1);
        const auto told = cluster.ask<WalkAnswer>(alice_all, 1, CreateRequest{kRoot, kFile, kBoth, true, name, {}});
        file = told.answer.attributes.id;
        ASSERT_EQ(told.error, 0);
        grant = {kBoth, told.answer.proof};
        elsewhere = cluster.owner_of_chunk(file, 1);
        ASSERT_NE(elsewhere, cluster.home_of(file));
    }
    // Puts data without a size.
    void put(test::ShardClient& client, const Grant& by, char byte) {
        std::fill_n(client.data.begin(), kBytes, static_cast<std::uint8_t>(byte));
        const auto told = cluster.ask<DataAnswer>(client, elsewhere, WriteRequest{file, by, kChunk, 0, kBytes, 0});
        ASSERT_EQ(told.error, 0);
    }
    void extend(test::ShardClient& client, const Grant& by) {
        const auto told =
            cluster.ask<DataAnswer>(client, cluster.home_of(file), ExtendRequest{file, by, kChunk + kBytes, 0});
        ASSERT_EQ(told.error, 0);
    }
    Grant open(test::ShardClient& client) {
        const auto told = cluster.ask<OpenAnswer>(client, cluster.home_of(file), OpenRequest{file, kBoth});
        EXPECT_EQ(told.error, 0);
        return {kBoth, told.answer.proof};
    }
    [[nodiscard]] bool has_chunk() { return cluster.store(elsewhere).tables().chunk({file, 1}) != nullptr; }
    std::string content(test::ShardClient& client, const Grant& by) {
        const auto told = cluster.ask<DataAnswer>(client, elsewhere, ReadRequest{file, by, kChunk, kBytes, 0});
        EXPECT_EQ(told.error, 0);
        return {client.data.begin(), client.data.begin() + kBytes};
    }

    test::ShardClient alice_all{2};
    test::ShardClient bob{3};
    std::string name;
    FileId file{};
    Grant grant{};
    ShardNumber elsewhere = 0;
};

TEST_F(ClusterSweep, ChunksBeyondTheEndGoOnceNobodyHasTheFileOpen) {
    put(alice_all, grant, 'a');
    cluster.pass(Sweeper::kEvery + seconds(2));
    EXPECT_TRUE(has_chunk()) << "its client may be about to tell the size";
    cluster.forget(alice_all);
    cluster.pass(Sweeper::kEvery + seconds(2));
    EXPECT_FALSE(has_chunk());
    check_cluster(cluster);
}

TEST_F(ClusterSweep, AClientThatWaitsLongIsWaitedFor) {
    put(alice_all, grant, 'a');
    cluster.forget(bob);
    cluster.pass(Sweeper::kEvery + Sweeper::kEvery + Sweeper::kEvery);
    extend(alice_all, grant);
    EXPECT_EQ(content(alice_all, grant), std::string(kBytes, 'a'));
    check_cluster(cluster);
}

TEST_F(ClusterSweep, WhatIsOpenAtOneRoundGoesInALaterOne) {
    put(alice_all, grant, 'a');
    (void)open(bob);
    cluster.forget(alice_all);
    cluster.pass(Sweeper::kEvery + seconds(2));
    EXPECT_TRUE(has_chunk());
    EXPECT_EQ(cluster.ask<EmptyAnswer>(bob, cluster.home_of(file), CloseRequest{file}).error, 0);
    cluster.pass(Sweeper::kEvery + seconds(2));
    EXPECT_FALSE(has_chunk());
    check_cluster(cluster);
}

// A write was under way for so long that its file was removed.
TEST_F(ClusterSweep, ChunksOfAFileThatIsGoneGo) {
    EXPECT_EQ(cluster.ask<EmptyAnswer>(alice_all, cluster.home_of(file), CloseRequest{file}).error, 0);
    EXPECT_EQ(remove(kRoot, name), 0);
    cluster.pass(seconds(20));
    EXPECT_EQ(cluster.ask<AttributesAnswer>(root, cluster.home_of(file), StatRequest{file}).error, ESTALE);
    put(alice_all, grant, 'a');
    EXPECT_TRUE(has_chunk());
    cluster.forget(alice_all);
    cluster.pass(Sweeper::kEvery + seconds(2));
    EXPECT_FALSE(has_chunk());
    check_cluster(cluster);
}

// Bob opens the file and writes right after the home has answered that no client has it open.
TEST_F(ClusterSweep, WhatIsWrittenBehindTheHomesAnswerStays) {
    const ShardNumber home = cluster.home_of(file);
    put(alice_all, grant, 'a');
    cluster.forget(alice_all);
    bool is_answered = false;
    cluster.mail().set_watch([&](const Letter& letter) {
        const auto message = parse_peer_message(letter.bytes);
        if (letter.from == home && letter.to == elsewhere && message &&
            std::holds_alternative<PeerAnswer>(message->what) &&
            std::get<PeerAnswer>(message->what).attributes.id == file) {
            is_answered = true;
        }
        return true;
    });
    cluster.pass(Sweeper::kEvery - seconds(1));
    for (int i = 0; i != 500'000 && !is_answered; ++i) {
        cluster.step();
    }
    ASSERT_TRUE(is_answered);
    const Grant by = open(bob);
    put(bob, by, 'b');
    ASSERT_TRUE(has_chunk()) << "the answer has not arrived before";
    cluster.pass(seconds(1));
    extend(bob, by);
    EXPECT_EQ(content(bob, by), std::string(kBytes, 'b'));
    check_cluster(cluster);
}

}  // namespace
}  // namespace cairn::fs
