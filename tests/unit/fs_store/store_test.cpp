// A store in memory: its refusals, its content, and the blocks that it frees.
#include "tests/unit/fs_store/store_fixture.hpp"

namespace cairn::fs {
namespace {

TEST_F(StoreTest, HasAfterARestartWhatWasCommitted) {
    StoreModel model(3);
    for (int i = 0; i < 300; ++i) {
        model.step(*store);
        store->commit();
    }
    store->check();
    reopen();
    EXPECT_EQ(facts_of(*store), model.facts());
    EXPECT_GT(model.facts().size(), 20U);
}

TEST_F(StoreTest, WhatIsNotCommittedMayBeGone) {
    Inode inode;
    inode.id = {1, 1};
    ASSERT_TRUE(put(inode));
    EXPECT_NE(store->tables().inode({1, 1}), nullptr);
    reopen();
    EXPECT_EQ(store->tables().inode({1, 1}), nullptr);
}

TEST_F(StoreTest, APartOfAChunkIsWrittenAndTheRestStays) {
    ASSERT_TRUE(write(kChunk, 0, filled(10'000, 1)));
    ASSERT_TRUE(write(kChunk, 5000, filled(100, 2)));
    ASSERT_TRUE(write(kChunk, 30'000, filled(1, 3)));
    store->commit();
    reopen();
    const auto content = read(kChunk, 0, 32'000);
    EXPECT_EQ(content[4999], 1);
    EXPECT_EQ(content[5000], 2);
    EXPECT_EQ(content[5099], 2);
    EXPECT_EQ(content[5100], 1);
    EXPECT_EQ(content[9999], 1);
    EXPECT_EQ(content[10'000], 0);
    EXPECT_EQ(content[29'999], 0);
    EXPECT_EQ(content[30'000], 3);
    EXPECT_EQ(content[30'001], 0);
    EXPECT_EQ(read({{9, 9}, 0}, 100, 50), filled(50, 0)) << "nobody wrote it";
}

TEST_F(StoreTest, AFilesChunksAreFoundFromTheLastOneOn) {
    const FileId file{7, 8};
    const auto before = [&](std::uint64_t index) { return store->tables().chunk_before(file, index); };
    EXPECT_EQ(before(std::uint64_t{1} << 32U), std::nullopt);
    for (const std::uint32_t index : {5U, 0U, ~0U}) {
        ASSERT_TRUE(write({file, index}, 0, filled(10, 1)));
    }
    ASSERT_TRUE(write({{7, 9}, 4}, 0, filled(10, 1)));
    store->commit();
    for (const bool reopens : {false, true}) {
        if (reopens) {
            reopen();
        }
        EXPECT_EQ(before(std::uint64_t{1} << 32U), ~0U);
        EXPECT_EQ(before(~0U), 5U);
        EXPECT_EQ(before(6), 5U);
        EXPECT_EQ(before(5), 0U);
        EXPECT_EQ(before(1), 0U);
        EXPECT_EQ(before(0), std::nullopt);
    }
    for (const std::uint32_t index : {5U, 0U, ~0U}) {
        ASSERT_TRUE(put(Gone{ChunkId{file, index}}, Need::Shrinks));
        EXPECT_EQ(before(6), index == 5 ? std::optional(0U) : std::nullopt);
    }
    EXPECT_EQ(before(std::uint64_t{1} << 32U), std::nullopt);
}

TEST_F(StoreTest, AnotherGenerationBeginsWithZeros) {
    ASSERT_TRUE(write(kChunk, 0, filled(8000, 1), 1));
    ASSERT_TRUE(write(kChunk, 100, filled(50, 2), 2));
    const auto content = read(kChunk, 0, 8000);
    EXPECT_EQ(content[99], 0);
    EXPECT_EQ(content[100], 2);
    EXPECT_EQ(content[150], 0);
    EXPECT_EQ(content[5000], 0);
    store->commit();
    store->check();
}

TEST_F(StoreTest, SpaceComesBackWithTheCommit) {
    const std::uint32_t before = store->use().free_blocks;
    ASSERT_TRUE(write(kChunk, 0, filled(64 << 10, 1)));
    store->commit();
    EXPECT_EQ(store->use().free_blocks, before - 16);
    ASSERT_TRUE(put(Gone{kChunk}, Need::Shrinks));
    EXPECT_EQ(store->use().free_blocks, before - 16) << "a crash may bring it back";
    store->commit();
    EXPECT_EQ(store->use().free_blocks, before);
}

TEST_F(StoreTest, ASmallFileCostsABlock) {
    const std::uint32_t before = store->use().free_blocks;
    ASSERT_TRUE(write(kChunk, 0, filled(1, 1)));
    store->commit();
    EXPECT_EQ(store->use().free_blocks, before - 1);
}

TEST_F(StoreTest, WhoReadsKeepsItsBlocks) {
    ASSERT_TRUE(write(kChunk, 0, filled(64 << 10, 1)));
    store->commit();
    const std::uint32_t before = store->use().free_blocks;
    Hold first = store->hold(kChunk, 5000, 10'000);
    Hold second = store->hold(kChunk, 0, 4096);
    ASSERT_EQ(first.runs.size(), 1U);
    EXPECT_EQ(first.runs[0].count, 3U);
    ASSERT_TRUE(put(Gone{kChunk}, Need::Shrinks));
    store->commit();
    EXPECT_EQ(store->use().free_blocks, before + 12);
    store->check();
    store->release(first);
    EXPECT_EQ(store->use().free_blocks, before + 15);
    store->release(second);
    EXPECT_EQ(store->use().free_blocks, before + 16);
    store->check();
}

TEST_F(StoreTest, AWriteThatIsGivenUpLeavesNothing) {
    const std::uint32_t before = store->use().free_blocks;
    auto pending = store->begin_write(kChunk, 0, 100, 20'000);
    ASSERT_TRUE(pending.has_value());
    store->check(5);
    store->data().fill(*pending, 0, filled(20'000, 7));
    store->give_up(*pending);
    EXPECT_EQ(store->use().free_blocks, before);
    EXPECT_EQ(store->tables().chunk(kChunk), nullptr);
}

TEST_F(StoreTest, DamageIsNoticed) {
    ASSERT_TRUE(write(kChunk, 0, filled(20'000, 1)));
    store->commit();
    const std::uint32_t block = store->tables().chunk(kChunk)->extents[0].run.first + 2;
    medium->memory()[std::size_t{block} * kBlockBytes + 77] ^= 0x10;
    std::vector<std::uint8_t> content(20'000);
    EXPECT_FALSE(store->read(kChunk, 0, content));
    EXPECT_FALSE(store->read(kChunk, 2 * kBlockBytes, std::span(content).first(1)));
    EXPECT_TRUE(store->read(kChunk, 3 * kBlockBytes, std::span(content).first(100)));
    EXPECT_EQ(store->scrub(kChunk).damaged, 1U);
    ASSERT_TRUE(write(kChunk, 2 * kBlockBytes, filled(kBlockBytes, 9)))
        << "who writes the whole block needs none of it";
    EXPECT_EQ(store->scrub(kChunk).damaged, 0U);
}

// It keeps all records that are still true, including those of long ago.
TEST_F(StoreTest, TheLogStaysSmall) {
    ASSERT_TRUE(put(Dentry{{5, 5}, {6, 6}, 7, "old"}));
    ASSERT_TRUE(put(Intent{8, filled(30, 9)}));
    ASSERT_TRUE(write(kChunk, 0, filled(100, 1)));
    for (std::uint64_t i = 0; i < 40'000; ++i) {
        ASSERT_TRUE(put_one_of_1000(i));
        if (i % 16 == 15) {
            store->commit();
            (void)store->clean(8192);
        }
    }
    store->commit();
    EXPECT_LT(store->use().log_units, 8U);
    EXPECT_FALSE(store->use().cleaning_is_stuck);
    reopen();
    EXPECT_EQ(store->tables().inodes().size(), 1000U);
    EXPECT_EQ(store->tables().inode({999, 1})->inode.size, 39'999U);
    EXPECT_EQ(store->tables().dentry({5, 5}, "old")->child, (FileId{6, 6}));
    EXPECT_EQ(store->tables().intents().find(8)->said, filled(30, 9));
    EXPECT_EQ(read(kChunk, 0, 100), filled(100, 1));
}

// A unit is free once a sync has made the reference to the next one durable.
TEST_F(StoreTest, TheLogStaysSmallOnPages) {
    medium = test::RecordingMedium::of_zeros(kStoreBytes, Granularity::Page);
    store = Store::format(*medium, {StoreShape::kLeastChunkBytes, 5, 6}).value();
    const std::uint32_t before = store->use().free_blocks;
    for (std::uint64_t i = 0; i < 60'000; ++i) {
        ASSERT_TRUE(put_one_of_1000(i));
        if (i % 64 == 63) {
            (void)store->clean(32'768);
            ASSERT_TRUE(store->sync().ok());
        }
    }
    EXPECT_LT(store->use().log_units, 8U);
    ASSERT_TRUE(write(kChunk, 0, filled(64 << 10, 1)));
    ASSERT_TRUE(put(Gone{kChunk}, Need::Shrinks));
    const std::uint32_t unsynced = store->use().free_blocks;
    store->commit();
    EXPECT_EQ(store->use().free_blocks, unsynced);
    ASSERT_TRUE(store->sync().ok());
    EXPECT_EQ(store->use().free_blocks, unsynced + 16);
    EXPECT_GT(store->use().free_blocks + 8 * kUnitBlocks, before);
    store->check();
}

TEST_F(StoreTest, NamesComeInTheOrderOfTheirHashes) {
    for (int i = 0; i < 500; ++i) {
        const std::string name = "name " + std::to_string(i);
        ASSERT_TRUE(put(Dentry{{1, 1}, {2, static_cast<std::uint64_t>(i)}, 0, name}));
    }
    const Names& names = *store->tables().names({1, 1});
    EXPECT_EQ(names.size(), 500U);
    EXPECT_TRUE(std::is_sorted(names.begin(), names.end(),
                               [](const auto& one, const auto& other) { return one.first < other.first; }));
    EXPECT_NE(store->tables().hash_of("a"), store->tables().hash_of(std::string_view("a\0", 2)));
    EXPECT_EQ(store->tables().dentry({1, 1}, "name 77")->child, (FileId{2, 77}));
    EXPECT_EQ(store->tables().dentry({1, 1}, "name 500"), nullptr);
    EXPECT_EQ(store->tables().dentry({1, 2}, "name 77"), nullptr);
}

TEST_F(StoreTest, ABlockHasOneOwner) {
    ASSERT_TRUE(write(kChunk, 0, filled(20'000, 1)));
    const std::vector<Extent> same = store->tables().chunk(kChunk)->extents;
    ASSERT_TRUE(put(Chunk{{{9, 9}, 0}, 0, same}));
    store->commit();
    const auto again = test::RecordingMedium::restart(medium->crash_none());
    const auto opened = Store::open(*again);
    ASSERT_FALSE(opened.ok());
    EXPECT_NE(opened.error().text().find("one block"), std::string::npos);
}

}  // namespace
}  // namespace cairn::fs
