// Changes at several shards whose logs have no room left, not even for changes that free space. The cleaning finds
// some, and no change stays half done.
#include "tests/unit/fs_shard/cluster_fixture.hpp"

namespace cairn::fs {
namespace {

using test::check_cluster;

class ClusterFull : public ClusterTest {
protected:
    static constexpr std::uint64_t kNoIntent = 77;
    static constexpr std::size_t kEntryBytes =
        4000;  // the cleaning needs more turns for a unit than a message for its way

    // Fills the log's room for such changes with records that mean nothing.
    void exhaust(ShardNumber shard, Need need = Need::Shrinks) {
        Store& store = cluster.store(shard);
        for (const std::size_t bytes : {kEntryBytes, std::size_t{1}}) {
            for (bool had_room = true; had_room;) {
                Change change;
                while (change.records().size() < bytes) {
                    change.put(Gone{Gone::IntentNumber{kNoIntent}});  // there is no smaller record
                }
                had_room = store.apply(change, need);
            }
        }
        store.commit();
    }
    // Makes a call, and exhausts all shards once this many messages have arrived. Returns the call's errno.
    int error_of_exhausted(ShardNumber to, const Request& request, int messages) {
        int left = messages;
        cluster.mail().set_watch([&](const Letter& /*unused*/) {
            --left;
            return true;
        });
        const CallToken call = cluster.send(root, to, request);
        for (int i = 0; i != 100 && left > 0; ++i) {
            cluster.step();
        }
        join();
        for (ShardNumber shard = 0; shard != cluster.size(); ++shard) {
            exhaust(shard);
        }
        for (int i = 0; i != 20'000 && !cluster.is_answered(call); ++i) {
            cluster.step();
        }
        const int error = error_of(call);
        for (int i = 0; i != 20; ++i) {
            cluster.pass(milliseconds(100));  // the logs are cleaned
        }
        check_cluster(cluster);
        return error;
    }
    // Runs once for each number of messages.
    template <class Run>
    void at_each_moment(const Run& run) {
        for (int messages = 0; messages != 9 && !HasFailure(); ++messages) {
            SCOPED_TRACE(messages);
            run(messages);
        }
        restart_all();
        check_cluster(cluster);
    }
    void restart_all() {
        for (ShardNumber shard = 0; shard != cluster.size(); ++shard) {
            cluster.end(shard);
            cluster.restart(shard);
        }
        cluster.pass(seconds(20));
    }
    // Returns a file or directory with its home at shard 1, and a name at shard 2.
    std::string moved(std::uint32_t mode) {
        const std::string name = name_at(kRoot, 1, "made");
        found_ = made(kRoot, name, mode);
        const std::string other = name_at(kRoot, 2, "moved");
        EXPECT_EQ(rename(kRoot, name, kRoot, other), 0);
        return other;
    }

    FileId found_{};
};

TEST_F(ClusterFull, AFileIsRemoved) {
    at_each_moment([&](int messages) {
        const std::string name = moved(kFile);
        EXPECT_EQ(error_of_exhausted(2, RemoveRequest{kRoot, false, name}, messages), 0);
        EXPECT_EQ(walk(kRoot, name), ENOENT);
    });
}

TEST_F(ClusterFull, ADirectoryIsRemoved) {
    at_each_moment([&](int messages) {
        const std::string name = moved(kDirectory);
        EXPECT_EQ(error_of_exhausted(2, RemoveRequest{kRoot, true, name}, messages), 0);
        EXPECT_EQ(walk(kRoot, name), ENOENT);
    });
}

TEST_F(ClusterFull, AFileThatIsReplacedGoes) {
    at_each_moment([&](int messages) {
        const std::string name = moved(kFile);
        const FileId file = found_;
        const std::string there = name_at(kRoot, 3, "there");
        made(kRoot, there);
        const int error = error_of_exhausted(2, RenameRequest{kRoot, kRoot, false, name, there}, messages);
        EXPECT_TRUE(error == 0 || error == ENOSPC) << error;
        EXPECT_EQ(walk(kRoot, name), error == 0 ? ENOENT : 0);
        EXPECT_EQ(walk(kRoot, there), 0);
        EXPECT_EQ(found == file, error == 0);
    });
}

TEST_F(ClusterFull, ADirectoryThatIsReplacedGoes) {
    at_each_moment([&](int messages) {
        const std::string name = moved(kDirectory);
        const FileId directory = found_;
        const std::string there = moved(kDirectory);
        const int error = error_of_exhausted(2, RenameRequest{kRoot, kRoot, false, name, there}, messages);
        EXPECT_TRUE(error == 0 || error == ENOSPC) << error;
        EXPECT_EQ(walk(kRoot, name), error == 0 ? ENOENT : 0);
        EXPECT_EQ(walk(kRoot, there), 0);
        EXPECT_EQ(found == directory, error == 0);
    });
}

TEST_F(ClusterFull, ADirectoryThatMovesEndsItsTurn) {
    const FileId to = made(kRoot, name_at(kRoot, 3, "to"), kDirectory);
    at_each_moment([&](int messages) {
        const std::string name = moved(kDirectory);
        const std::string other = name_at(to, 3, "other");
        const int error = error_of_exhausted(2, RenameRequest{kRoot, to, false, name, other}, messages);
        EXPECT_TRUE(error == 0 || error == ENOSPC) << error;
        EXPECT_EQ(walk(to, other), error == 0 ? 0 : ENOENT);
        EXPECT_EQ(walk(kRoot, name), error == 0 ? ENOENT : 0);
    });
}

TEST_F(ClusterFull, ANameThatHasNoRoomIsNotCounted) {
    at_each_moment([&](int messages) {
        const std::string name = moved(kFile);
        const FileId file = found_;
        const std::string other = name_at(kRoot, 3, "other");
        const int error = error_of_exhausted(3, LinkRequest{file, kRoot, other}, messages);
        EXPECT_TRUE(error == 0 || error == ENOSPC) << error;
        EXPECT_EQ(stat(file).links, error == 0 ? 2U : 1U);
        EXPECT_EQ(walk(kRoot, other), error == 0 ? 0 : ENOENT);
    });
}

TEST_F(ClusterFull, AFileIsCut) {
    const auto file = create(kRoot, name_at(kRoot, 1), kFile, kBoth);
    const FileId id = file.answer.attributes.id;
    at_each_moment([&](int messages) {
        for (std::uint64_t chunk = 0; chunk != 6; ++chunk) {
            write(id, file.answer.proof, chunk * kChunk, 9000, stat(id).generation);
        }
        SetAttributesRequest cut{id, {}, kSetSize};
        cut.size = kChunk + 5000;
        EXPECT_EQ(error_of_exhausted(1, cut, messages), 0);
        EXPECT_EQ(stat(id).size, cut.size);
    });
}

// A client without an answer asks again, and a restarted shard may have made the cut meanwhile.
TEST_F(ClusterFull, ACutThatWasMadeIsNotRefused) {
    const auto file = create(kRoot, name_at(kRoot, 1), kFile, kBoth);
    const FileId id = file.answer.attributes.id;
    write(id, file.answer.proof, 0, 9000);
    SetAttributesRequest cut{id, {}, kSetSize};
    cut.size = 5000;
    for (int times = 0; times != 2; ++times) {
        exhaust(1, Need::Grows);
        EXPECT_EQ(cluster.ask<AttributesAnswer>(root, 1, cut).error, 0) << times;
    }
    cut.size = 5001;
    exhaust(1, Need::Grows);
    EXPECT_EQ(cluster.ask<AttributesAnswer>(root, 1, cut).error, ENOSPC);
    EXPECT_EQ(stat(id).size, 5000U);
}

// Answers to clients that are gone are kept for some time.
TEST_F(ClusterFull, AClientThatIsGoneLeavesNoAnswers) {
    made(kRoot, name_at(kRoot, 1));
    EXPECT_NE(cluster.store(1).tables().answer({root.number, 0}), nullptr);
    exhaust(1);
    cluster.forget(root);
    EXPECT_NE(cluster.store(1).tables().answer({root.number, 0}), nullptr);
    cluster.pass(milliseconds(10));
    EXPECT_EQ(cluster.store(1).tables().answer({root.number, 0}), nullptr);
}

}  // namespace
}  // namespace cairn::fs
