// Censuses: everything in a shard is listed once, whatever changes meanwhile; damaged blocks are found.
#include <set>

#include "tests/unit/fs_shard/cluster_fixture.hpp"
#include "tests/unit/fs_shard/shard_fixture.hpp"

namespace cairn::fs {
namespace {

class CensusTest : public ShardTest {
protected:
    using Bytes = std::vector<std::uint8_t>;

    // Asks, and returns the answer's facts; each listed thing goes to `see`.
    template <class Counted, class See>
    CensusAnswer ask(const Request& request, See&& see) {
        const CallToken token = rig.send(root, request);
        rig.wait_for(token);
        bytes_ = rig.answers().at(token);
        CensusReader reader(bytes_);
        EXPECT_EQ(reader.head()->error, 0);
        while (const auto counted = reader.next<Counted>()) {
            see(*counted);
        }
        EXPECT_TRUE(reader.is_whole());
        return reader.facts();
    }
    template <class Counted, class See, class Between>
    void count_all(CensusKind kind, See&& see, Between&& between) {
        for (CensusAnswer facts; !facts.is_end; between()) {
            facts = ask<Counted>(CensusRequest{kind, facts.next}, see);
        }
    }
    std::set<FileId> files() {
        std::set<FileId> all;
        count_all<CountedFile>(
            CensusKind::Files, [&](const CountedFile& file) { EXPECT_TRUE(all.insert(file.id).second); }, [] {});
        return all;
    }
    // Compares all chunks, this many blocks in a call. Returns how many blocks there were.
    template <class See>
    std::uint32_t scrub_all(std::uint32_t most, See&& see) {
        std::uint32_t blocks = 0;
        for (CensusAnswer facts; !facts.is_end; blocks += facts.blocks) {
            facts = ask<CountedChunk>(ScrubRequest{facts.next, most}, see);
            EXPECT_LE(facts.blocks, std::min(most, 256U));
        }
        return blocks;
    }
    void damage(const ChunkId& chunk, std::uint32_t block) {
        const ChunkState* const state = rig.store().tables().chunk(chunk);
        ASSERT_NE(state, nullptr);
        rig.medium().memory()[std::size_t{state->extents.front().run.first + block} * kBlockBytes + 7] ^= 1;
    }

private:
    Bytes bytes_;
};

TEST_F(CensusTest, IsForASuperuserAndWhoseDaemonItIs) {
    EXPECT_EQ(error_of(alice, CensusRequest{CensusKind::Files, {}}), EPERM);
    EXPECT_EQ(error_of(alice, ScrubRequest{{}, 256}), EPERM);
    rig.own_user = alice.uid;
    rig.restart();
    EXPECT_EQ(error_of(alice, CensusRequest{CensusKind::Files, {}}), 0);
    EXPECT_EQ(error_of(alice, ScrubRequest{{}, 256}), 0);
    EXPECT_EQ(error_of(bob, CensusRequest{CensusKind::Files, {}}), EPERM);
    EXPECT_EQ(error_of(bob, ScrubRequest{{}, 256}), EPERM);
    EXPECT_EQ(error_of(root, CensusRequest{static_cast<CensusKind>(3), {}}), EINVAL);
    EXPECT_EQ(error_of(root, CensusRequest{static_cast<CensusKind>(255), {}}), EINVAL);
    EXPECT_EQ(error_of(root, ScrubRequest{{}, 0}), EINVAL);
}

TEST_F(CensusTest, AnyCursorIsAnswered) {
    make(root, "file");
    for (const std::uint32_t part : {0U, 1U, 255U, 256U, 257U, ~0U}) {
        for (const FileId& id : {FileId{}, FileId{1, 1}, FileId{~0ULL, ~0ULL}}) {
            const CensusCursor cursor{part, id, part == 1 ? 0 : ~0ULL};
            EXPECT_EQ(error_of(root, CensusRequest{CensusKind::Files, cursor}), 0);
            EXPECT_EQ(error_of(root, CensusRequest{CensusKind::Names, cursor}), 0);
            EXPECT_EQ(error_of(root, CensusRequest{CensusKind::Chunks, cursor}), 0);
            EXPECT_EQ(error_of(root, ScrubRequest{cursor, ~0U}), 0);
        }
    }
}

TEST_F(CensusTest, AFileIsThereWithWhatItsHomeKnows) {
    const FileId directory = make(root, "directory", kDirectoryMode);
    const Handle handle = make_open(root, "file");
    ASSERT_EQ(write(root, handle, 0, "some bytes"), 0);
    rig.pass(seconds(11));  // clients that have come back
    std::map<FileId, CountedFile> all;
    count_all<CountedFile>(
        CensusKind::Files, [&](const CountedFile& file) { all[file.id] = file; }, [] {});
    ASSERT_EQ(all.size(), 3U);
    EXPECT_EQ(all[directory].parent, kRoot);
    EXPECT_EQ(all[directory].mode, kDirectoryMode);
    EXPECT_EQ(all[directory].links, 1U);
    EXPECT_FALSE(all[directory].is_open);
    EXPECT_EQ(all[handle.file].size, 10U);
    EXPECT_EQ(all[handle.file].mode, kFileMode);
    EXPECT_TRUE(all[handle.file].is_open);
    ASSERT_EQ(remove(root, "file"), 0);
    EXPECT_TRUE(files().contains(handle.file));
    EXPECT_EQ(close(root, handle.file), 0);
    EXPECT_FALSE(files().contains(handle.file));
}

TEST_F(CensusTest, AfterARestartAFileMayBeOpen) {
    const FileId file = make(root, "file");
    const auto is_open = [&] {
        bool open = false;
        count_all<CountedFile>(
            CensusKind::Files, [&](const CountedFile& each) { open = open || (each.id == file && each.is_open); },
            [] {});
        return open;
    };
    rig.restart();
    EXPECT_TRUE(is_open());
    rig.pass(seconds(11));
    EXPECT_FALSE(is_open());
}

// Files and directories of names come and go between the pages, so that the tables are built anew.
TEST_F(CensusTest, WhatStaysIsListedOnceWhateverComesAndGoes) {
    const FileId crowded = make(root, "crowded", kDirectoryMode);
    std::set<FileId> stay;
    std::set<std::string> names;
    for (int i = 0; i != 700; ++i) {
        names.insert("stays" + std::to_string(i));
        stay.insert(make(root, "stays" + std::to_string(i), kFileMode, crowded));
    }
    int made = 0;
    const auto change = [&] {
        for (int i = 0; i != 40; ++i, ++made) {
            make(root, "comes" + std::to_string(made), made % 3 == 0 ? kDirectoryMode : kFileMode, crowded);
            if (made >= 60) {
                const int gone = made - 60;
                ASSERT_EQ(remove(root, "comes" + std::to_string(gone), gone % 3 == 0, crowded), 0);
            }
        }
    };
    std::multiset<FileId> seen;
    count_all<CountedFile>(
        CensusKind::Files, [&](const CountedFile& file) { seen.insert(file.id); }, change);
    for (const FileId& id : stay) {
        EXPECT_EQ(seen.count(id), 1U);
    }
    std::multiset<std::string> seen_names;
    count_all<CountedName>(
        CensusKind::Names,
        [&](const CountedName& name) {
            seen_names.emplace(name.name);
            EXPECT_EQ(name.directory, name.child == crowded ? kRoot : crowded);
        },
        change);
    for (const std::string& name : names) {
        EXPECT_EQ(seen_names.count(name), 1U) << name;
    }
    EXPECT_GT(seen.size(), stay.size());
}

TEST_F(CensusTest, TwoReadersDoNotDisturbEachOther) {
    std::set<FileId> all{kRoot};
    for (int i = 0; i != 300; ++i) {
        all.insert(make(root, "file" + std::to_string(i)));
    }
    std::multiset<FileId> seen;
    count_all<CountedFile>(
        CensusKind::Files, [&](const CountedFile& file) { seen.insert(file.id); },
        [&] {
            EXPECT_EQ(files().size(), all.size());
            (void)ask<CountedFile>(CensusRequest{CensusKind::Files, {}}, [](const CountedFile&) {});  // and stops there
        });
    EXPECT_EQ(std::set<FileId>(seen.begin(), seen.end()), all);
    EXPECT_EQ(seen.size(), all.size());
}

// Another reader has stopped within the same part of a table.
TEST_F(CensusTest, AReaderThatBeginsSeesWhatHasComeMeanwhile) {
    const Handle handle = make_open(root, "file");
    Table<ChunkId, bool> table;
    for (std::uint32_t index = 0; index != 4000; ++index) {
        table[{handle.file, index}] = true;
    }
    std::vector<std::uint32_t> in_first_part;
    table.for_each_of(0, [&](const ChunkId& chunk, bool) { in_first_part.push_back(chunk.index); });
    ASSERT_GE(in_first_part.size(), 2U);
    const auto see = [](const CountedChunk&) {};
    ASSERT_EQ(write(root, handle, std::uint64_t{in_first_part[0]} * kChunk, std::string(2 * kBlockBytes, 'x')), 0);
    EXPECT_EQ(ask<CountedChunk>(ScrubRequest{{}, 1}, see).next.part, 0U);
    ASSERT_EQ(write(root, handle, std::uint64_t{in_first_part[1]} * kChunk, "y"), 0);
    EXPECT_EQ(scrub_all(256, see), 3U);
}

TEST_F(CensusTest, ChunksAreListedWithTheirBlocks) {
    const Handle handle = make_open(root, "file");
    const std::string text(3 * kBlockBytes, 'x');
    ASSERT_EQ(write(root, handle, 0, text), 0);
    ASSERT_EQ(write(root, handle, 5ULL * kChunk + kBlockBytes, "y"), 0);
    std::map<std::uint32_t, std::uint32_t> blocks;
    count_all<CountedChunk>(
        CensusKind::Chunks,
        [&](const CountedChunk& chunk) {
            EXPECT_EQ(chunk.file, handle.file);
            blocks[chunk.index] = chunk.blocks;
        },
        [] {});
    EXPECT_EQ(blocks, (std::map<std::uint32_t, std::uint32_t>{{0, 3}, {5, 1}}));
}

TEST_F(CensusTest, ScrubComparesEachBlockOnceAndNamesDamagedChunks) {
    const std::string text(kChunk, 'x');
    std::vector<Handle> handles;
    for (int i = 0; i != 20; ++i) {
        handles.push_back(make_open(root, "file" + std::to_string(i)));
        ASSERT_EQ(write(root, handles.back(), 0, text), 0);
        ASSERT_EQ(write(root, handles.back(), 3ULL * kChunk + kBlockBytes, "behind a hole"), 0);
    }
    const std::uint32_t blocks = 20 * (kChunk / kBlockBytes + 1);
    std::map<ChunkId, std::uint32_t> damaged;
    const auto see = [&](const CountedChunk& chunk) { damaged[{chunk.file, chunk.index}] += chunk.blocks; };
    for (const std::uint32_t most : {1U, 7U, 256U, ~0U}) {
        EXPECT_EQ(scrub_all(most, see), blocks) << most;
        EXPECT_TRUE(damaged.empty());
    }
    damage({handles[3].file, 0}, 2);
    damage({handles[3].file, 0}, 15);
    damage({handles[11].file, 3}, 0);
    for (const std::uint32_t most : {1U, 7U, 256U}) {
        damaged.clear();
        EXPECT_EQ(scrub_all(most, see), blocks) << most;
        EXPECT_EQ(damaged, (std::map<ChunkId, std::uint32_t>{{{handles[3].file, 0}, 2}, {{handles[11].file, 3}, 1}}));
    }
    damage({handles[3].file, 0}, 2);  // flips the bit back, so that the store's own check finds nothing
    damage({handles[3].file, 0}, 15);
    damage({handles[11].file, 3}, 0);
}

TEST_F(CensusTest, MoreDamagedChunksThanAnAnswerHoldsAreAllNamed) {
    std::set<FileId> all;
    for (int i = 0; i != 256; ++i) {
        const Handle handle = make_open(root, "file" + std::to_string(i));
        ASSERT_EQ(write(root, handle, 0, "x"), 0);
        damage({handle.file, 0}, 0);
        all.insert(handle.file);
    }
    std::multiset<FileId> found;
    EXPECT_EQ(scrub_all(256, [&](const CountedChunk& chunk) { found.insert(chunk.file); }), 256U);
    EXPECT_EQ(std::set<FileId>(found.begin(), found.end()), all);
    EXPECT_EQ(found.size(), all.size());
}

// A change there waits for another shard.
TEST_F(ClusterTest, ACensusSaysThatAChangeIsUnderWay) {
    const auto under_way = [&](ShardNumber shard) {
        const auto told = cluster.send(root, shard, CensusRequest{CensusKind::Files, {}});
        const std::vector<std::uint8_t> bytes = cluster.take_answer(told);
        const CensusReader reader(bytes);
        EXPECT_EQ(reader.head()->error, 0);
        return reader.facts().under_way;
    };
    const std::string name = name_at(kRoot, 1);
    const FileId file = made(kRoot, name);
    const ShardNumber home = cluster.home_of(file);
    const std::string other = name_at(kRoot, static_cast<ShardNumber>((home + 1U) % cluster.size()));
    const ShardNumber owner = cluster.owner_of_name(kRoot, other);
    EXPECT_EQ(under_way(owner), 0U);
    cluster.end(home);
    const CallToken token = cluster.send(root, owner, LinkRequest{file, kRoot, other});
    EXPECT_FALSE(cluster.is_answered(token));
    EXPECT_EQ(under_way(owner), 1U);
    cluster.restart(home);
    cluster.pass(seconds(1));
    EXPECT_TRUE(cluster.is_answered(token));
    EXPECT_EQ(under_way(owner), 0U);
}

}  // namespace
}  // namespace cairn::fs
