// Each shard ends at each message of each change in which several shards take part: a completed change stays.
#include <functional>

#include "tests/unit/fs_shard/cluster_fixture.hpp"

namespace cairn::fs {
namespace {

// A change: how to ask for it, and how to check that it was made.
struct Crash {
    Request request{};
    ShardNumber to = 0;
    std::function<bool()> is_made{};
    std::string name{};
    std::string to_name{};
    FileId file{};
    FileId other{};
};

class ClusterCrash : public ClusterTest {
protected:
    ClusterCrash() {
        for (std::size_t i = 0; i != root.data.size(); ++i) {
            root.data[i] = static_cast<std::uint8_t>((i * 7) + 1);
        }
    }

    using Make = std::function<void(Crash&)>;
    // Counts messages from now on.
    void count_messages() {
        messages = 0;
        cluster.mail().set_watch([this](const Letter& letter) {
            messages += letter.what == Letter::What::Message ? 1U : 0U;
            return true;
        });
    }
    // Ends a shard after this many messages. Returns false if there were fewer.
    bool ends_after(std::uint32_t most, ShardNumber victim, bool asks_late, const Make& make) {
        Crash crash;
        make(crash);
        cluster.pass(milliseconds(20));
        EXPECT_FALSE(crash.is_made());
        count_messages();
        const std::uint32_t sequence = ++root.sequence;
        CallToken token = cluster.send_as(root, crash.to, crash.request, 0, sequence);
        for (int quiet = 0; messages < most && quiet != 1000; ++quiet) {
            cluster.step();
        }
        const bool is_reached = messages >= most;
        if (is_reached) {
            cluster.end(victim);
            cluster.pass((most + victim) % 2 == 0 ? microseconds(100) : seconds(3));
            cluster.restart(victim);
        }
        cluster.mail().set_watch({});
        coordinator = crash.to;
        const bool is_lost = is_reached && victim == crash.to && !cluster.is_answered(token);
        finish(crash, is_lost && asks_late ? 0 : token, sequence, is_lost && !asks_late);
        return is_reached;
    }
    // Lets the client ask again until it gets a success, and once more. 0: it has not asked.
    void finish(const Crash& crash, CallToken token, std::uint32_t sequence, bool asks_again) {
        bool was_made = false;
        for (ShardNumber shard = 0; shard != cluster.size(); ++shard) {
            cluster.send(root, shard, StatFsRequest{}, 1);  // the client is still there
        }
        if (asks_again) {
            token = cluster.send_as(root, crash.to, crash.request, 0, sequence);
        }
        for (int times = 0; times != 3; ++times) {
            cluster.pass(seconds(15));
            cluster.pass(milliseconds(20));
            if (token != 0) {
                ASSERT_TRUE(cluster.is_answered(token)) << times;
                const int error = error_of(token);
                EXPECT_TRUE(error == 0 || (error == EIO && !was_made)) << times << ": " << error;
                EXPECT_TRUE(error != 0 || crash.is_made()) << times;
            }
            was_made = was_made || crash.is_made();
            EXPECT_EQ(was_made, crash.is_made());
            test::check_cluster(cluster);
            ASSERT_FALSE(HasFailure());
            token = cluster.send_as(root, crash.to, crash.request, 0, sequence);
        }
        EXPECT_TRUE(was_made);
        cluster.pass(milliseconds(20));
        EXPECT_TRUE(cluster.is_answered(token));
    }
    void ends_at_each_message(const Make& make, std::uint32_t least) {
        for (ShardNumber victim = 0; victim != cluster.size(); ++victim) {
            for (const bool asks_late : {false, true}) {
                SCOPED_TRACE("shard " + std::to_string(victim) + (asks_late ? ", which is asked again late" : ""));
                if (asks_late && victim != coordinator) {
                    continue;
                }
                std::uint32_t most = 1;
                for (; ends_after(most, victim, asks_late, make) && !HasFailure(); ++most) {
                }
                if (HasFailure()) {
                    FAIL() << "after message " << most;
                }
                EXPECT_GE(most, least) << "messages of the change";
            }
        }
    }

    bool is_there(const FileId& in, const std::string& name, const FileId& file) {
        return walk(in, name) == 0 && found == file;
    }
    bool is_gone(const FileId& file) { return cluster.store(cluster.home_of(file)).tables().inode(file) == nullptr; }
    // Makes a file, with a chunk at each shard and more, that no client has open.
    FileId long_file(const std::string& name) {
        const auto file = create(kRoot, name, kFile, kBoth);
        const FileId id = file.answer.attributes.id;
        for (std::uint64_t chunk = 0; chunk != 6; ++chunk) {
            write(id, file.answer.proof, chunk * kChunk, 3000);
        }
        EXPECT_EQ(cluster.ask<EmptyAnswer>(root, cluster.home_of(id), CloseRequest{id}).error, 0);
        return id;
    }
    // Checks that a file's chunks up to a size have the written bytes, and that there are no others.
    void expect_data(const FileId& file, std::uint64_t size) {
        for (std::uint32_t chunk = 0; chunk != 6; ++chunk) {
            fs::Store& store = cluster.store(cluster.owner_of_chunk(file, chunk));
            const std::uint64_t begin = chunk * kChunk;
            const std::uint64_t left = size > begin ? std::min<std::uint64_t>(size - begin, 3000) : 0;
            std::vector<std::uint8_t> bytes(4096);
            EXPECT_TRUE(store.read({file, chunk}, 0, bytes));
            for (std::uint64_t i = 0; i != bytes.size(); ++i) {
                ASSERT_EQ(bytes[i], i < left ? root.data[i] : 0) << chunk << " " << i;
            }
        }
    }

    std::uint32_t messages = 0;
    ShardNumber coordinator = 0;  // the last change's
};

TEST_F(ClusterCrash, Link) {
    ends_at_each_message(
        [&](Crash& crash) {
            crash.file = made(kRoot, name_at(kRoot, 1, "file"));
            crash.name = name_at(kRoot, 2, "link");
            crash.to = 2;
            crash.request = LinkRequest{crash.file, kRoot, crash.name};
            crash.is_made = [&] { return is_there(kRoot, crash.name, crash.file) && stat(crash.file).links == 2; };
        },
        2);
}

TEST_F(ClusterCrash, RemovalOfALinkedFile) {
    ends_at_each_message(
        [&](Crash& crash) {
            crash.file = made(kRoot, name_at(kRoot, 1, "file"));
            crash.name = name_at(kRoot, 2, "link");
            EXPECT_EQ(link(crash.file, kRoot, crash.name), 0);
            crash.to = 2;
            crash.request = RemoveRequest{kRoot, false, crash.name};
            crash.is_made = [&] { return walk(kRoot, crash.name) == ENOENT && stat(crash.file).links == 1; };
        },
        2);
}

TEST_F(ClusterCrash, RenameOverAFile) {
    ends_at_each_message(
        [&](Crash& crash) {
            crash.name = name_at(kRoot, 1, "file");
            crash.file = made(kRoot, crash.name);
            const std::string first = name_at(kRoot, 3, "other");
            crash.other = made(kRoot, first);
            crash.to_name = name_at(kRoot, 2, "to");
            EXPECT_EQ(rename(kRoot, first, kRoot, crash.to_name), 0);
            crash.to = 1;
            crash.request = RenameRequest{kRoot, kRoot, false, crash.name, crash.to_name};
            crash.is_made = [&] {
                return walk(kRoot, crash.name) == ENOENT && is_there(kRoot, crash.to_name, crash.file) &&
                       is_gone(crash.other);
            };
        },
        4);
}

TEST_F(ClusterCrash, RenameOfADirectory) {
    const FileId to = made(kRoot, name_at(kRoot, 3, "to"), kDirectory);
    ends_at_each_message(
        [&](Crash& crash) {
            const std::string first = name_at(kRoot, 2, "first");
            crash.file = made(kRoot, first, kDirectory);
            crash.name = name_at(kRoot, 1, "directory");
            EXPECT_EQ(rename(kRoot, first, kRoot, crash.name), 0);
            crash.to_name = name_at(to, 3, "to");
            crash.to = 1;
            crash.request = RenameRequest{kRoot, to, false, crash.name, crash.to_name};
            crash.is_made = [&] {
                return walk(kRoot, crash.name) == ENOENT && is_there(to, crash.to_name, crash.file);
            };
        },
        8);
}

TEST_F(ClusterCrash, RenameOverADirectory) {
    const FileId to = made(kRoot, name_at(kRoot, 3, "to"), kDirectory);
    ends_at_each_message(
        [&](Crash& crash) {
            crash.name = name_at(kRoot, 1, "directory");
            crash.file = made(kRoot, crash.name, kDirectory);
            const std::string first = name_at(to, 0, "other");
            crash.other = made(to, first, kDirectory);
            crash.to_name = name_at(to, 2, "to");
            EXPECT_EQ(rename(to, first, to, crash.to_name), 0);
            crash.to = 1;
            crash.request = RenameRequest{kRoot, to, false, crash.name, crash.to_name};
            crash.is_made = [&] {
                return walk(kRoot, crash.name) == ENOENT && is_there(to, crash.to_name, crash.file) &&
                       is_gone(crash.other);
            };
        },
        8);
}

TEST_F(ClusterCrash, RemovalOfADirectory) {
    ends_at_each_message(
        [&](Crash& crash) {
            const std::string first = name_at(kRoot, 1, "directory");
            crash.file = made(kRoot, first, kDirectory);
            crash.name = name_at(kRoot, 2, "to");
            EXPECT_EQ(rename(kRoot, first, kRoot, crash.name), 0);
            crash.to = 2;
            crash.request = RemoveRequest{kRoot, true, crash.name};
            crash.is_made = [&] { return walk(kRoot, crash.name) == ENOENT && is_gone(crash.file); };
        },
        6);
}

TEST_F(ClusterCrash, TruncationOfALongFile) {
    ends_at_each_message(
        [&](Crash& crash) {
            crash.file = long_file(name_at(kRoot, 1, "file"));
            SetAttributesRequest cut{crash.file, {}, kSetSize};
            cut.size = (2 * kChunk) + 1000;
            crash.to = 1;
            crash.request = cut;
            crash.is_made = [&] {
                const std::uint64_t size = stat(crash.file).size;
                EXPECT_TRUE(size == (2 * kChunk) + 1000 || size == (5 * kChunk) + 3000) << size;
                expect_data(crash.file, size);
                return size == (2 * kChunk) + 1000;
            };
        },
        6);
}

TEST_F(ClusterCrash, RemovalOfALongFile) {
    ends_at_each_message(
        [&](Crash& crash) {
            const std::string first = name_at(kRoot, 1, "file");
            crash.file = long_file(first);
            crash.name = name_at(kRoot, 2, "to");
            EXPECT_EQ(rename(kRoot, first, kRoot, crash.name), 0);
            crash.to = 2;
            crash.request = RemoveRequest{kRoot, false, crash.name};
            crash.is_made = [&] { return walk(kRoot, crash.name) == ENOENT && is_gone(crash.file); };
        },
        8);
}

}  // namespace
}  // namespace cairn::fs
