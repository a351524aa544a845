// Shards that end, do not answer, or send wrong messages: no caller waits for ever, and begun changes are finished.
#include "fs/message/peers.hpp"
#include "tests/unit/fs_shard/cluster_fixture.hpp"

namespace cairn::fs {
namespace {

using test::check_cluster;

class ClusterFailures : public ClusterTest {
protected:
    CallToken send_link(const FileId& file, const FileId& in, const std::string& name) {
        return cluster.send(root, cluster.owner_of_name(in, name), LinkRequest{file, in, name});
    }
    // Returns the answer to a waiting call if it comes within that time, else -1.
    int answered_within(CallToken token, Duration span) {
        cluster.pass(span);
        return cluster.is_answered(token) ? error_of(token) : -1;
    }
    CallToken send_rename(const FileId& in, const std::string& name, const FileId& to, const std::string& to_name) {
        return cluster.send(root, cluster.owner_of_name(in, name), RenameRequest{in, to, false, name, to_name});
    }
};

TEST_F(ClusterFailures, ALostShardIsNotWaitedFor) {
    const FileId file = made(kRoot, name_at(kRoot, 1));
    const std::string first = name_at(kRoot, 2, "first");
    const std::string second = name_at(kRoot, 2, "second");
    const CallToken under_way = send_link(file, kRoot, first);
    cluster.end(1);
    EXPECT_EQ(answered_within(under_way, milliseconds(50)), EIO) << "whoever waits is told";
    EXPECT_EQ(answered_within(send_link(file, kRoot, second), milliseconds(50)), EIO) << "and whoever asks later";
    cluster.restart(1);
    cluster.pass(seconds(1));
    EXPECT_EQ(stat(file).links, 3U) << "what has begun is finished";
    EXPECT_EQ(walk(kRoot, first), 0);
    EXPECT_EQ(walk(kRoot, second), 0);
    check_cluster(cluster);
}

TEST_F(ClusterFailures, ARequestThatGotLostIsMadeAgain) {
    const FileId file = made(kRoot, name_at(kRoot, 1));
    const std::string name = name_at(kRoot, 2);
    part(1, 2);
    const CallToken call = send_link(file, kRoot, name);
    EXPECT_EQ(answered_within(call, seconds(9)), -1);
    EXPECT_EQ(answered_within(call, seconds(2)), EIO);
    join();
    cluster.pass(seconds(11));
    EXPECT_EQ(walk(kRoot, name), 0);
    EXPECT_EQ(stat(file).links, 2U);
    check_cluster(cluster);
}

TEST_F(ClusterFailures, NoCallWaitsForALockedNameForEver) {
    const FileId file = made(kRoot, name_at(kRoot, 1));
    const std::string name = name_at(kRoot, 2);
    part(1, 2);
    const CallToken link = send_link(file, kRoot, name);
    const CallToken late = cluster.send(root, 2, CreateRequest{kRoot, kFile, 0, true, name, {}}, 1);
    EXPECT_EQ(answered_within(late, seconds(9)), -1);
    EXPECT_EQ(answered_within(late, seconds(2)), ETIMEDOUT);
    EXPECT_EQ(error_of(link), EIO);
    const CallToken in_time = cluster.send(root, 2, CreateRequest{kRoot, kFile, 0, true, name, {}}, 1);
    join();
    cluster.pass(milliseconds(9500));
    EXPECT_EQ(error_of(in_time), EEXIST);
    check_cluster(cluster);
}

TEST_F(ClusterFailures, ADirectoryStaysWhileAShardThatMayHaveNamesOfItIsGone) {
    const std::string name = name_at(kRoot, 1);
    const FileId directory = made(kRoot, name, kDirectory);
    const std::string moved = name_at(kRoot, 2);
    ASSERT_EQ(rename(kRoot, name, kRoot, moved), 0);
    const std::string inner = name_at(directory, 3);
    made(directory, inner);
    for (const std::string& at : {moved, name}) {  // at another shard than the directory's home, and there
        cluster.end(3);
        cluster.step();
        const CallToken call = cluster.send(root, cluster.owner_of_name(kRoot, at), RemoveRequest{kRoot, true, at});
        const int error = answered_within(call, milliseconds(500));
        EXPECT_TRUE(error == EIO || error == ENOTEMPTY) << error;
        cluster.restart(3);
        cluster.pass(seconds(15));
        EXPECT_EQ(walk(directory, inner), 0);
        EXPECT_EQ(remove(kRoot, at, true), ENOTEMPTY);
        check_cluster(cluster);
        if (at == moved) {
            ASSERT_EQ(rename(kRoot, moved, kRoot, name), 0);
        }
    }
}

TEST_F(ClusterFailures, ACreateThatMeetsTheDirectorysRemovalFindsNoDirectory) {
    for (ShardNumber shard = 0; shard != cluster.size(); ++shard) {
        const std::string name = name_at(kRoot, 1);
        const FileId directory = made(kRoot, name, kDirectory);
        const std::string moved = name_at(kRoot, 2);
        ASSERT_EQ(rename(kRoot, name, kRoot, moved), 0);
        int recalls = 0;
        cluster.mail().set_watch([&](const Letter& letter) {
            recalls += letter.from == 1 ? 1 : 0;
            return true;
        });
        const CallToken removal = cluster.send(root, 2, RemoveRequest{kRoot, true, moved});
        while (recalls == 0) {
            cluster.step();
        }
        join();
        const std::string inner = unused_name_at(directory, shard);
        const CallToken call = cluster.send(root, shard, CreateRequest{directory, kFile, 0, true, inner, {}}, 1);
        EXPECT_FALSE(cluster.is_answered(call));
        cluster.pass(milliseconds(10));
        EXPECT_EQ(error_of(removal), 0);
        EXPECT_EQ(error_of(call), ENOENT) << shard;
        check_cluster(cluster);
    }
}

TEST_F(ClusterFailures, TwoCutsOfOneFileAreMadeOneAfterTheOther) {
    const FileId file = made(kRoot, name_at(kRoot, 1));
    SetAttributesRequest set{file, {}, kSetSize};
    set.size = 100 * kChunk;
    ASSERT_EQ(cluster.ask<AttributesAnswer>(root, 1, set).error, 0);
    set.size = 50 * kChunk;
    const CallToken one = cluster.send(root, 1, set);
    set.size = 20 * kChunk;
    const CallToken other = cluster.send(root, 1, set, 1);
    const CallToken stat_call = cluster.send(root, 1, StatRequest{file}, 2);
    EXPECT_FALSE(cluster.is_answered(stat_call)) << "a file that is being cut has no size";
    cluster.pass(milliseconds(10));
    EXPECT_EQ(error_of(one), 0);
    EXPECT_EQ(error_of(other), 0);
    EXPECT_EQ(error_of(stat_call), 0);
    EXPECT_EQ(stat(file).size, set.size);
    EXPECT_EQ(stat(file).generation, 2U);
    check_cluster(cluster);
}

TEST_F(ClusterFailures, AFileWithFewChunksAndManyHolesIsCut) {
    const auto file = create(kRoot, name_at(kRoot, 1), kFile, kBoth);
    const FileId id = file.answer.attributes.id;
    for (const std::uint64_t chunk : {1U, 2U, 3U, 4U, 21'000U, 21'001U, 21'002U, 21'003U}) {
        write(id, file.answer.proof, chunk * kChunk, 5000);
    }
    SetAttributesRequest cut{id, {}, kSetSize};
    cut.size = 100;
    EXPECT_EQ(cluster.ask<AttributesAnswer>(root, 1, cut).error, 0);
    EXPECT_EQ(stat(id).size, 100U);
    check_cluster(cluster);
}

// One shard has more chunks than a single change removes.
TEST_F(ClusterFailures, AFileWithManyChunksIsCut) {
    constexpr ShardNumber kElsewhere = 2;
    const auto file = create(kRoot, name_at(kRoot, 1), kFile, kBoth);
    const FileId id = file.answer.attributes.id;
    std::vector<std::uint32_t> chunks;
    for (std::uint32_t chunk = 1; chunks.size() != 200; ++chunk) {
        if (cluster.owner_of_chunk(id, chunk) == kElsewhere) {
            write(id, file.answer.proof, chunk * kChunk, 100);
            chunks.push_back(chunk);
        }
    }
    SetAttributesRequest cut{id, {}, kSetSize};
    cut.size = 100;
    EXPECT_EQ(cluster.ask<AttributesAnswer>(root, 1, cut).error, 0);
    for (const std::uint32_t chunk : chunks) {
        EXPECT_EQ(cluster.store(kElsewhere).tables().chunk({id, chunk}), nullptr) << chunk;
    }
    check_cluster(cluster);
}

TEST_F(ClusterFailures, AFileThatIsBeingCutIsRemovedThereafter) {
    const std::string name = name_at(kRoot, 1);
    const FileId file = made(kRoot, name);
    SetAttributesRequest set{file, {}, kSetSize};
    set.size = 100 * kChunk;
    ASSERT_EQ(cluster.ask<AttributesAnswer>(root, 1, set).error, 0);
    set.size = 50 * kChunk;
    const CallToken cut = cluster.send(root, 1, set);
    const CallToken removal = cluster.send(root, 1, RemoveRequest{kRoot, false, name}, 1);
    EXPECT_FALSE(cluster.is_answered(removal));
    EXPECT_EQ(error_of(cut), 0);
    EXPECT_EQ(error_of(removal), 0);
    cluster.pass(milliseconds(10));
    check_cluster(cluster);
}

TEST_F(ClusterFailures, ACutGoesOnBehindItsLockAfterARestart) {
    const FileId file = made(kRoot, name_at(kRoot, 1));
    SetAttributesRequest set{file, {}, kSetSize};
    set.size = 100 * kChunk;
    ASSERT_EQ(cluster.ask<AttributesAnswer>(root, 1, set).error, 0);
    set.size = 50 * kChunk;
    cluster.end(3);
    cluster.step();
    EXPECT_EQ(answered_within(cluster.send(root, 1, set), milliseconds(10)), EIO);
    cluster.end(1);
    cluster.restart(1);
    const CallToken asked = cluster.send(root, 1, StatRequest{file});
    EXPECT_EQ(answered_within(asked, milliseconds(500)), -1) << "a file that is being cut has no size";
    cluster.restart(3);
    EXPECT_EQ(answered_within(asked, seconds(1)), 0);
    EXPECT_EQ(stat(file).size, set.size);
    check_cluster(cluster);
}

// A write that was on its way when its file was cut has no effect.
TEST_F(ClusterFailures, WritesFromBeforeACutDoNothing) {
    const auto file = create(kRoot, name_at(kRoot, 1), kFile, kBoth);
    const FileId id = file.answer.attributes.id;
    for (std::uint64_t chunk = 0; chunk != 8; ++chunk) {
        write(id, file.answer.proof, chunk * kChunk, 5000);
    }
    for (std::uint64_t chunk = 8; chunk-- != 1;) {
        SetAttributesRequest cut{id, {}, kSetSize};
        cut.size = (chunk * kChunk) + 100;
        const std::uint64_t generation = stat(id).generation;
        ASSERT_EQ(cluster.ask<AttributesAnswer>(root, 1, cut).error, 0);
        const WriteRequest late{id, {kBoth, file.answer.proof}, (chunk * kChunk) + 50, generation, 100, 0};
        const auto told =
            cluster.ask<DataAnswer>(root, cluster.owner_of_chunk(id, static_cast<std::uint32_t>(chunk)), late);
        EXPECT_EQ(told.error, kErrorOtherGeneration) << chunk;
        write(id, file.answer.proof, chunk * kChunk, 5000, generation + 1);
    }
}

// The shard that has to place a directory is gone, and the shard that moves it holds the turn.
TEST_F(ClusterFailures, NoMoveOfADirectoryWaitsForEver) {
    const FileId to = made(kRoot, name_at(kRoot, 1, "to"), kDirectory);
    const std::string name = name_at(kRoot, 2, "a");
    const std::string target = name_at(to, 3, "a");
    made(kRoot, name, kDirectory);
    std::vector<std::string> others;
    for (ShardNumber shard = 0; shard != 3; ++shard) {
        others.push_back(name_at(kRoot, shard, "b"));
        made(kRoot, others.back(), kDirectory);
    }
    const std::string free_name = name_at(to, 1, "free");
    cluster.end(3);
    cluster.pass(milliseconds(1));
    EXPECT_EQ(answered_within(send_rename(kRoot, name, to, target), milliseconds(100)), EIO);
    std::vector<CallToken> calls;
    for (std::size_t i = 0; i != others.size(); ++i) {
        calls.push_back(send_rename(kRoot, others[i], to, free_name + std::to_string(i)));
    }
    cluster.pass(seconds(4));
    for (const CallToken call : calls) {
        EXPECT_FALSE(cluster.is_answered(call));
    }
    cluster.pass(seconds(2));
    for (const CallToken call : calls) {
        EXPECT_EQ(error_of(call), EIO);
    }
    cluster.restart(3);
    cluster.pass(seconds(2));
    EXPECT_EQ(walk(to, target), 0) << "the first one has moved";
    for (std::size_t i = 0; i != others.size(); ++i) {
        EXPECT_EQ(rename(kRoot, others[i], to, free_name + std::to_string(i)), 0);
    }
    cluster.pass(milliseconds(10));
    check_cluster(cluster);
}

TEST_F(ClusterFailures, ATurnThatHasEndedIsNotHeldAfterARestart) {
    const FileId to = made(kRoot, name_at(kRoot, 1, "to"), kDirectory);
    for (int i = 0; i != 2; ++i) {
        const std::string name = name_at(kRoot, 2, "a");
        made(kRoot, name, kDirectory);
        EXPECT_EQ(rename(kRoot, name, to, name_at(to, 3, "a")), 0);
        cluster.pass(milliseconds(10));
        cluster.end(cluster.home_of(kRoot));
        cluster.restart(cluster.home_of(kRoot));
        cluster.pass(seconds(1));
    }
    check_cluster(cluster);
}

TEST_F(ClusterFailures, AnswersOfOthersThanWereAskedAreNotBelieved) {
    const FileId file = made(kRoot, name_at(kRoot, 1));
    std::uint64_t number = 0;
    cluster.mail().set_watch([&](const Letter& letter) {
        if (letter.from == 2 && letter.to == 1) {
            number = parse_peer_message(letter.bytes)->number;
            return false;
        }
        return true;
    });
    const CallToken call = send_link(file, kRoot, name_at(kRoot, 2));
    ASSERT_NE(number, 0U);
    std::vector<std::uint8_t> answer(kMostPeerBytes);
    answer.resize(put_peer_answer(answer, number, {EPERM}));
    EXPECT_TRUE(cluster.hand(2, 3, answer));
    cluster.step();
    EXPECT_FALSE(cluster.is_answered(call));
    EXPECT_TRUE(cluster.hand(2, 1, answer));
    EXPECT_EQ(error_of(call), EPERM);
    answer.push_back(0);
    EXPECT_FALSE(cluster.hand(2, 1, answer));
    EXPECT_FALSE(cluster.hand(2, 1, {}));
}

}  // namespace
}  // namespace cairn::fs
