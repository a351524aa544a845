// A shard's turns: when answers leave, lists, full stores, and media of pages.
#include <set>

#include "fs/shard/attributes.hpp"
#include "tests/unit/fs_shard/shard_fixture.hpp"

namespace cairn::fs {
namespace {

class ShardTurns : public ShardTest {
protected:
    using ShardTest::ShardTest;
    // Makes files of a chunk each until the store is full. Returns how many.
    std::uint32_t fill() {
        for (std::uint32_t files = 0;; ++files) {
            const std::string name = "full" + std::to_string(files);
            const auto made = rig.ask<WalkAnswer>(alice, CreateRequest{kRoot, kFileMode, kReadWrite, true, name, {}});
            const Handle handle{made.answer.attributes.id, {kReadWrite, made.answer.proof}};
            if (made.error != 0 || write(alice, handle, 0, std::string(kChunk, static_cast<char>('a' + files % 26)))) {
                EXPECT_EQ(made.error, 0);
                return files;
            }
            EXPECT_EQ(close(alice, handle.file), 0);
        }
    }
    void check_filled(std::uint32_t first, std::uint32_t end) {
        for (std::uint32_t file = first; file < end; ++file) {
            const Handle handle = open(alice, walk("full" + std::to_string(file)));
            EXPECT_EQ(read(alice, handle, 0, kChunk), std::string(kChunk, static_cast<char>('a' + file % 26))) << file;
            EXPECT_EQ(close(alice, handle.file), 0);
        }
    }
};

class ShardOfPages : public ShardTurns {
protected:
    ShardOfPages() : ShardTurns(Granularity::Page) {}
};

// The effect of a call is durable before its answer leaves.
TEST_F(ShardTurns, AnswersLeaveBehindTheirCommit) {
    const CallToken token = rig.send(alice, CreateRequest{kRoot, kFileMode, 0, true, "file", {}});
    int fences = 0;
    rig.medium().set_on_fence([&] {
        ++fences;
        EXPECT_FALSE(rig.is_answered(token));
    });
    EXPECT_FALSE(rig.is_answered(token));
    rig.end_turn();
    rig.medium().set_on_fence({});
    EXPECT_GT(fences, 0);
    EXPECT_TRUE(rig.is_answered(token));
}

TEST_F(ShardTurns, ATurnHasManyCalls) {
    std::vector<CallToken> tokens;
    const std::uint64_t fences = rig.medium().fences();
    for (std::uint32_t i = 0; i != 1000; ++i) {
        const std::string name = "name" + std::to_string(i);
        tokens.push_back(rig.send(alice, CreateRequest{kRoot, kFileMode, 0, true, name, {}}, i));
    }
    rig.end_turn();
    EXPECT_LT(rig.medium().fences() - fences, 20U) << "one commit for many";
    for (const CallToken token : tokens) {
        EXPECT_EQ(rig.error_of(token), 0);
    }
    // Answers of full length leave if there is no room for one more.
    for (int i = 0; i != 200; ++i) {
        tokens.push_back(rig.send(alice, ListRequest{kRoot, 0}));
    }
    rig.end_turn();
    for (int i = 0; i != 200; ++i) {
        EXPECT_EQ(rig.error_of(tokens[1000U + static_cast<std::size_t>(i)]), 0);
    }
}

TEST_F(ShardTurns, ListsAreCompleteThoughNamesComeAndGo) {
    const FileId directory = make(alice, "directory", kDirectoryMode);
    EXPECT_TRUE(rig.list(alice, directory).empty());
    std::map<std::string, FileId> stays;
    for (int i = 0; i != 3000; ++i) {
        const std::string name = "stays" + std::to_string(i) + std::string(static_cast<std::size_t>(i % 90), '.');
        stays[name] = make(alice, name, i % 3 == 0 ? kDirectoryMode : kFileMode, directory);
        make(alice, "goes" + std::to_string(i), kFileMode, directory);
    }
    std::set<std::string> seen;
    std::uint64_t cursor = 0;
    bool is_end = false;
    int pages = 0;
    for (int next = 0; !is_end; ++pages) {
        const CallToken token = rig.send(alice, ListRequest{directory, cursor});
        rig.end_turn();
        ListReader reader(rig.answers().at(token));
        ASSERT_TRUE(reader.head() && reader.head()->error == 0);
        while (const std::optional<ListedName> name = reader.next()) {
            EXPECT_GE(name->cursor, cursor);
            cursor = name->cursor;
            EXPECT_TRUE(seen.insert(std::string(name->name)).second) << name->name;
            if (const auto found = stays.find(std::string(name->name)); found != stays.end()) {
                EXPECT_EQ(name->child, found->second);
                EXPECT_EQ(name->mode, type_of(stat(name->child).mode));
            }
        }
        EXPECT_TRUE(reader.is_whole());
        is_end = reader.facts().is_end;
        for (int i = 0; i != 20 && next != 3000; ++i, ++next) {
            ASSERT_EQ(remove(alice, "goes" + std::to_string(next), false, directory), 0);
            make(alice, "comes" + std::to_string(next), kFileMode, directory);
        }
    }
    EXPECT_GT(pages, 50);
    for (const auto& [name, file] : stays) {
        EXPECT_TRUE(seen.contains(name)) << name;
    }
    for (const std::uint64_t beyond : {std::uint64_t{1} << 51U, ~std::uint64_t{0}}) {
        const CallToken token = rig.send(alice, ListRequest{directory, beyond});
        rig.end_turn();
        EXPECT_EQ(ListReader(rig.answers().at(token)).facts().count, 0);
        EXPECT_TRUE(ListReader(rig.answers().at(token)).facts().is_end);
    }
    rig.restart();
    EXPECT_EQ(rig.list(alice, directory).size(), 6000U);
}

TEST_F(ShardTurns, AnIdleShardHasNothingToDo) {
    rig.pass(seconds(20));
    EXPECT_EQ(rig.shard().next_deadline(), Instant::never());
    const std::uint64_t flushed = rig.medium().flushed_lines();
    rig.settle();
    EXPECT_EQ(rig.medium().flushed_lines(), flushed);
    rig.restart();
    EXPECT_EQ(rig.shard().next_deadline(), rig.now + seconds(10)) << "then clients have come back or not";
}

TEST_F(ShardTurns, StatFsTellsWhatThereIs) {
    const auto before = rig.ask<StatFsAnswer>(alice, StatFsRequest{}).answer;
    EXPECT_EQ(before.files, 1U);
    const Handle handle = make_open(alice, "file");
    ASSERT_EQ(write(alice, handle, 0, std::string(kChunk, 'x')), 0);
    const auto after = rig.ask<StatFsAnswer>(alice, StatFsRequest{}).answer;
    EXPECT_EQ(after.files, 2U);
    EXPECT_EQ(after.chunks, 1U);
    EXPECT_EQ(after.bytes, before.bytes);
    EXPECT_EQ(after.free_bytes, before.free_bytes - kChunk);
    EXPECT_GT(after.log_bytes, 0U);
    EXPECT_LT(after.bytes, test::ShardRig::kBytes);
}

TEST_F(ShardTurns, AFullStoreRefusesAndKeepsAll) {
    const std::uint32_t files = fill();
    ASSERT_GT(files, 100U);
    const Handle last = open(alice, walk("full" + std::to_string(files)));
    EXPECT_EQ(write(alice, last, 0, std::string(kChunk, 'x')), ENOSPC);
    check_filled(0, files);
    for (std::uint32_t i = 0; i != 5; ++i) {
        EXPECT_EQ(remove(alice, "full" + std::to_string(i)), 0);
    }
    EXPECT_EQ(write(alice, last, 0, std::string(kChunk, 'x')), 0) << "space has come back";
    rig.restart();
    check_filled(5, files);
}

// The block that a cut copies is available once the blocks after it are free.
TEST_F(ShardTurns, AFileInAFullStoreIsCutWithinABlock) {
    const Handle handle = make_open(alice, "file");
    for (std::uint64_t chunk = 0; chunk != 3; ++chunk) {
        ASSERT_EQ(write(alice, handle, chunk * kChunk, std::string(kChunk, 'x')), 0);
    }
    (void)fill();
    const Handle rest = make_open(bob, "rest");
    for (std::uint64_t block = 0; write(bob, rest, block * kBlockBytes, "x") == 0; ++block) {
    }
    ASSERT_EQ(rig.store().use().free_blocks, kBlocksForCuts);
    EXPECT_EQ(resize(alice, handle.file, kChunk + 100), 0);
    EXPECT_EQ(stat(handle.file).size, kChunk + 100U);
    EXPECT_TRUE(read(alice, handle, kChunk, kChunk) == std::string(100, 'x'));
    EXPECT_EQ(rig.store().use().free_blocks, kBlocksForCuts + 2 * (kChunk / kBlockBytes) - 1);
}

// There are more of them at once than free blocks: the last one goes on once its first change has made room.
TEST_F(ShardTurns, FilesInAFullStoreAreCutWithinABlock) {
    std::vector<Handle> files;
    for (std::uint32_t i = 0; i != kBlocksForCuts + 1; ++i) {
        files.push_back(make_open(alice, "file" + std::to_string(i)));
        ASSERT_EQ(write(alice, files[i], 0, std::string(2 * kBlockBytes, 'x')), 0);
    }
    ASSERT_EQ(write(alice, files.back(), kChunk, "x"), 0);
    (void)fill();
    const Handle rest = make_open(bob, "rest");
    for (std::uint64_t block = 0; write(bob, rest, block * kBlockBytes, "x") == 0; ++block) {
    }
    ASSERT_EQ(rig.store().use().free_blocks, kBlocksForCuts);
    std::vector<CallToken> cuts;
    for (const Handle& file : files) {
        SetAttributesRequest request{file.file, {}, kSetSize};
        request.size = 100;
        cuts.push_back(rig.send(alice, request, static_cast<std::uint32_t>(cuts.size())));
    }
    for (const CallToken cut : cuts) {
        rig.wait_for(cut);
        EXPECT_EQ(rig.error_of(cut), 0);
    }
    for (const Handle& file : files) {
        EXPECT_EQ(stat(file.file).size, 100U);
        EXPECT_TRUE(read(alice, file, 0, kChunk) == std::string(100, 'x'));
    }
}

// The log is full of names and attributes before the data are; and it is cleaned all the time.
TEST_F(ShardTurns, AStoreThatIsFullOfNames) {
    std::uint32_t made = 0;
    int error = 0;
    for (; error == 0; ++made) {
        const std::string target = std::to_string(made) + std::string(4000, 't');
        error = error_of(alice, CreateRequest{kRoot, 0120777, 0, true, "n" + std::to_string(made), target});
    }
    EXPECT_EQ(error, ENOSPC);
    ASSERT_GT(--made, 1500U);
    EXPECT_EQ(rig.list(root, kRoot).size(), made);
    for (std::uint32_t i = 0; i != made; ++i) {
        ASSERT_EQ(remove(alice, "n" + std::to_string(i)), 0) << i;
    }
    for (int i = 0; i != 2000 && rig.end_turn(); ++i) {
    }
    EXPECT_TRUE(rig.list(root, kRoot).empty());
    EXPECT_LT(rig.store().use().log_units, 20U);
    EXPECT_FALSE(rig.store().use().cleaning_is_stuck);
    rig.restart();
    EXPECT_GT(fill(), 100U);
}

// Many removals in each turn append faster than the cleaning if it counts only one of them.
TEST_F(ShardTurns, AStoreThatIsFullOfSmallFilesIsEmptiedInBursts) {
    constexpr std::uint32_t kBurst = 256;
    const auto in_bursts = [&](std::uint32_t most, const auto& request) {
        for (std::uint32_t done = 0;; done += kBurst) {
            std::vector<CallToken> calls;
            std::vector<std::string> names;
            for (std::uint32_t i = done; i != std::min(most, done + kBurst); ++i) {
                names.push_back("n" + std::to_string(i));
                calls.push_back(rig.send(alice, request(names.back())));
            }
            rig.end_turn();
            for (std::uint32_t i = 0; i != calls.size(); ++i) {
                rig.wait_for(calls[i]);
                if (const int error = rig.error_of(calls[i]); error != 0) {
                    EXPECT_EQ(error, ENOSPC);
                    return done + i;
                }
            }
            if (calls.size() != kBurst) {
                return most;
            }
        }
    };
    const std::uint32_t made = in_bursts(
        1'000'000, [](const std::string& name) { return CreateRequest{kRoot, kFileMode, 0, true, name, {}}; });
    ASSERT_GT(made, 30'000U);
    EXPECT_EQ(in_bursts(made, [](const std::string& name) { return RemoveRequest{kRoot, false, name}; }), made);
    rig.settle();
    EXPECT_TRUE(rig.list(root, kRoot).empty());
    EXPECT_LT(rig.store().use().log_units, 8U);
}

TEST_F(ShardTurns, TheLogIsCleanedWhileCallsGoOn) {
    const Handle handle = make_open(alice, "file");
    for (int i = 0; i != 20'000; ++i) {
        ASSERT_EQ(chmod(alice, handle.file, static_cast<std::uint32_t>(i % 0777)), 0);
    }
    EXPECT_LT(rig.store().use().log_units, 14U);
}

TEST_F(ShardTurns, SyncIsOverAtOnceWhereCommitsAreDurable) {
    EXPECT_EQ(error_of(alice, SyncRequest{}), 0);
    EXPECT_EQ(rig.shard().counters().syncs, 0U);
}

TEST_F(ShardOfPages, SyncIsAnsweredOnceAllIsDurable) {
    make(alice, "file");
    const CallToken token = rig.send(alice, SyncRequest{});
    const CallToken other = rig.send(bob, SyncRequest{});
    const std::uint64_t fences = rig.medium().fences();
    rig.medium().set_on_fence([&] { EXPECT_FALSE(rig.is_answered(token)); });
    rig.end_turn();
    rig.medium().set_on_fence({});
    EXPECT_GT(rig.medium().fences(), fences);
    EXPECT_EQ(rig.error_of(token), 0);
    EXPECT_EQ(rig.error_of(other), 0);
    EXPECT_EQ(rig.shard().counters().syncs, 1U) << "one for all";
    rig.restart();
    EXPECT_NE(walk("file"), FileId{});
}

TEST_F(ShardOfPages, WhatIsNotSyncedIsInFiveSeconds) {
    make(alice, "file");
    EXPECT_LE(rig.shard().next_deadline(), rig.now + seconds(5));
    rig.pass(seconds(6));
    rig.restart();
    EXPECT_NE(walk("file"), FileId{});
    rig.pass(seconds(20));
    const std::uint64_t syncs = rig.shard().counters().syncs;
    rig.pass(seconds(100));
    EXPECT_EQ(rig.shard().counters().syncs, syncs) << "nothing was written";
}

TEST_F(ShardOfPages, AFailedSyncIsToldToEverybodyFromThenOn) {
    make(alice, "file");
    rig.medium().refuses_syncs = true;
    EXPECT_EQ(error_of(alice, SyncRequest{}), EIO);
    rig.medium().refuses_syncs = false;
    EXPECT_EQ(error_of(bob, SyncRequest{}), EIO) << "what is lost does not come back";
    EXPECT_FALSE(rig.is_answered(~CallToken{0}));
}

TEST_F(ShardOfPages, AFullStoreFindsSpaceAgain) {
    const std::uint32_t files = fill();
    ASSERT_GT(files, 100U);
    check_filled(0, files);
    for (std::uint32_t i = 0; i != 5; ++i) {
        EXPECT_EQ(remove(alice, "full" + std::to_string(i)), 0);
    }
    const Handle last = open(alice, walk("full" + std::to_string(files)));
    (void)write(alice, last, 0, std::string(kChunk, 'x'));  // it may lack blocks that only a sync frees
    EXPECT_EQ(write(alice, last, 0, std::string(kChunk, 'x')), 0);
    ASSERT_EQ(error_of(alice, SyncRequest{}), 0);
    rig.restart();
    check_filled(5, files);
}

}  // namespace
}  // namespace cairn::fs
