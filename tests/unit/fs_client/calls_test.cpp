// Many calls at once, lost daemons, and malformed answers.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <coroutine>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/fs_client/with_daemon.hpp"

namespace cairn::fs {
namespace {

using Calls = WithDaemon;

TEST_F(Calls, MayBeMoreThanThereAreSlots) {
    begin({.shards = 3, .local = {0, 1}, .shape = {4, 4096}});
    make("/f");
    Counts counts;
    for (int i = 0; i != 1000; ++i) {
        fs->stat(i % 2 == 0 ? "/f" : "/none").start(count, &counts);
    }
    EXPECT_EQ(counts.ended, 0) << "none ends before poll()";
    while (counts.ended != 1000) {
        fs->wait();
    }
    EXPECT_EQ(counts.failed, 500);
}

TEST_F(Calls, GoOnFromTheirCompletions) {
    begin({.shape = {1, 4096}});
    make("/f");
    struct Chain {
        Client* fs;
        int left = 50;
        int deadlocks = 0;
        static void go_on(void* context, Outcome<Attributes> /*outcome*/) {
            auto& chain = *static_cast<Chain*>(context);
            chain.deadlocks += chain.fs->stat("/f").wait().error == EDEADLK ? 1 : 0;
            if (--chain.left != 0) {
                chain.fs->stat("/f").start(go_on, context);
            }
        }
    } chain{fs.get()};
    fs->stat("/f").start(Chain::go_on, &chain);
    while (chain.left != 0) {
        fs->wait();
    }
    EXPECT_EQ(chain.deadlocks, 50);
}

struct Detached {
    struct promise_type {  // NOLINT(readability-identifier-naming): the language's name
        [[nodiscard]] Detached get_return_object() const noexcept { return {}; }
        [[nodiscard]] std::suspend_never initial_suspend() const noexcept { return {}; }
        [[nodiscard]] std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
    };
};

Detached write_and_read(Client& fs, std::string& read) {
    const Outcome<File*> file = co_await fs.open("/f", O_CREAT | O_RDWR);
    const std::array<std::uint8_t, 3> text{'a', 'b', 'c'};
    (void)co_await fs.pwrite(*file.value, text, 0);
    std::array<std::uint8_t, 8> room{};
    const Outcome<std::uint64_t> bytes = co_await fs.pread(*file.value, room, 1);
    (void)co_await fs.close(*file.value);
    read.assign(reinterpret_cast<const char*>(room.data()), bytes.value);
}

TEST_F(Calls, AreAwaited) {
    begin({.shards = 2});
    std::string read;
    write_and_read(*fs, read);
    while (read.empty()) {
        fs->wait();
    }
    EXPECT_EQ(read, "bc");
}

TEST_F(Calls, OfThreadsHaveChannelsOfTheirOwn) {
    begin({.shards = 2, .local = {0, 1}});
    make("/f", "text");
    for (int round = 0; round != 2; ++round) {
        std::vector<std::thread> threads;
        std::atomic<int> failed{0};
        for (int i = 0; i != 3; ++i) {
            threads.emplace_back([this, &failed] {
                for (int call = 0; call != 200; ++call) {
                    failed += fs->stat("/f").wait().ok() ? 0 : 1;
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        EXPECT_EQ(failed, 0);
    }
    std::size_t channels = 0;
    daemon->with([&](FakeDaemon& all) {
        for (const auto& seen : all.seen) {
            channels = std::max(channels, seen.channel + 1);
        }
    });
    EXPECT_LE(channels, 4U) << "a new thread gets those of one that has ended";
}

TEST_F(Calls, FailIfAnswersAreNone) {
    begin({.shards = 2, .local = {0}});
    make("/f", "text");
    File* const file = fs->open("/f", O_RDWR).wait().value;
    std::unique_ptr<Directory> root = fs->opendir("/").wait().value;
    std::array<std::uint8_t, 100> room{};
    FakeFiles::Bytes huge(kAnswerBytes);
    huge.resize(put_answer(huge, {0, 1}, DataAnswer{0xffffffff, true, 0, ~0ULL, 0}));
    FakeFiles::Bytes odd_error(kAnswerBytes);
    odd_error.resize(put_error(odd_error, {-5, 1}));
    for (const FakeFiles::Bytes& bytes : {FakeFiles::Bytes{}, FakeFiles::Bytes{1, 2, 3}, FakeFiles::Bytes(8),
                                          FakeFiles::Bytes(4608, 0xff), FakeFiles::Bytes(4608), huge, odd_error}) {
        answer_all_with(bytes);
        EXPECT_EQ(fs->stat("/f").wait().error, EIO);
        EXPECT_EQ(fs->open("/f", O_RDONLY).wait().error, EIO);
        EXPECT_EQ(fs->pread(*file, room, 0).wait().error, EIO);
        EXPECT_EQ(fs->pwrite(*file, room, 0).wait().error, EIO);
        EXPECT_EQ(fs->readdir(*root).wait().error, EIO);
        EXPECT_EQ(fs->statfs().wait().error, EIO);
        EXPECT_EQ(fs->readlink("/f").wait().error, EIO);
    }
}

TEST_F(Calls, ListEachNameOnce) {
    begin({.shards = 3, .local = {0, 2}});
    std::set<std::string, std::less<>> made;
    for (int i = 0; i != 50; ++i) {
        made.insert("name" + std::to_string(i));
        make("/name" + std::to_string(i));
    }
    std::unique_ptr<Directory> root = fs->opendir("/").wait().value;
    std::set<std::string, std::less<>> listed;
    std::vector<std::uint64_t> cursors{0};
    for (;;) {
        const auto names = fs->readdir(*root).wait();
        ASSERT_EQ(names.error, 0);
        if (names.value.empty()) {
            break;
        }
        for (const DirectoryEntry& entry : names.value) {
            EXPECT_TRUE(listed.emplace(entry.name).second) << entry.name;
            EXPECT_TRUE(S_ISREG(entry.mode));
            EXPECT_EQ(entry.name.data()[entry.name.size()], 0);
            EXPECT_GE(entry.cursor, cursors.back());
            cursors.push_back(entry.cursor);
        }
    }
    EXPECT_EQ(listed, made);
    root->seek(cursors[30]);
    std::size_t left = 0;
    for (auto names = fs->readdir(*root).wait(); !names.value.empty(); names = fs->readdir(*root).wait()) {
        left += names.value.size();
    }
    EXPECT_GE(left, 20U);
    EXPECT_LE(left, 21U) << "one that shares a place may come again";
    EXPECT_EQ(fs->closedir(std::move(root)).wait().error, 0);
}

TEST_F(Calls, HaveTheOtherOperations) {
    begin({.shards = 3, .local = {0}});
    make("/f", "text");
    EXPECT_EQ(fs->link("/f", "/g").wait().error, 0);
    EXPECT_EQ(fs->stat("/g").wait().value.links, 2U);
    EXPECT_EQ(fs->rename("/f", "/g", true).wait().error, EEXIST);
    EXPECT_EQ(fs->rename("/f", "/h").wait().error, 0);
    EXPECT_EQ(content("/h"), "text");
    EXPECT_EQ(fs->truncate("/h", 2).wait().value.size, 2U);
    EXPECT_EQ(content("/g"), "te");
    EXPECT_EQ(fs->chmod("/h", 0600).wait().value.mode, S_IFREG | 0600U);
    EXPECT_EQ(fs->chown("/h", 1, ~0U).wait().error, 0);
    EXPECT_EQ(fs->utimens("/h", {}).wait().error, 0);
    EXPECT_EQ(fs->statfs().wait().value.bytes, 3000U);
    EXPECT_EQ(fs->statfs(1).wait().value.bytes, 1000U);
    File* const file = fs->open("/h", O_RDONLY).wait().value;
    EXPECT_EQ(fs->sync(*file).wait().error, 0);
    EXPECT_EQ(daemon->count("sync"), 3U);
    EXPECT_EQ(fs->unlink("/none").wait().error, ENOENT);
    EXPECT_EQ(fs->rmdir("/h").wait().error, ENOTDIR);
}

TEST_F(Calls, GiveToolsAShardsAnswerAsItCame) {
    begin({.shards = 3, .local = {0, 1}});
    for (std::uint16_t shard = 0; shard != 3; ++shard) {
        const auto bytes = ask(*fs, shard, CensusRequest{CensusKind::Chunks, {}}).wait();
        ASSERT_TRUE(bytes.ok());
        CensusReader reader(bytes.value);
        EXPECT_EQ(reader.next<CountedChunk>()->index, 3U);
        EXPECT_TRUE(reader.is_whole());
    }
    EXPECT_EQ(ask(*fs, 0, ScrubRequest{}).wait().error, EPERM);
    EXPECT_EQ(ask(*fs, 3, ScrubRequest{}).wait().error, EINVAL);
}

TEST_F(Calls, EndWithTheClient) {
    begin({.shards = 2, .local = {0, 1}});
    make("/f");
    hold_answers(true);
    Counts counts;
    for (int i = 0; i != 30; ++i) {
        fs->stat("/f").start(count, &counts);
    }
    fs.reset();
    EXPECT_EQ(counts.ended, 30);
    EXPECT_EQ(counts.failed, 30);
}

TEST(Connecting, SaysWhyItFails) {
    const auto nobody = Client::connect({.socket = "/nowhere/cairn.sock"});
    ASSERT_FALSE(nobody.ok());
    EXPECT_NE(nobody.error().text().find("/nowhere/cairn.sock"), std::string::npos);
    EXPECT_NE(nobody.error().text().find("cairn-fsd"), std::string::npos);
    EXPECT_FALSE(Client::connect({.socket = std::string(200, 'x')}).ok());
}

}  // namespace
}  // namespace cairn::fs
