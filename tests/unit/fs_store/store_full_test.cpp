// A full store: its refusals, and how it gets room again.
#include "tests/unit/fs_store/store_fixture.hpp"

namespace cairn::fs {
namespace {

// Creating fails first, then writing data; operations that free space never fail.
TEST_F(StoreTest, AFullStoreRefusesAndLivesOn) {
    std::uint32_t written = 0;
    while (write({{1, 1}, written}, 0, filled(64 << 10, static_cast<std::uint8_t>(written)))) {
        store->commit();
        ++written;
    }
    EXPECT_GT(written, 180U);
    EXPECT_LT(store->use().free_blocks, 16U + kBlocksForCuts);
    EXPECT_EQ(read({{1, 1}, 0}, 0, 10), filled(10, 0));
    EXPECT_EQ(read({{1, 1}, 20}, 60'000, 10), filled(10, 20));
    std::uint64_t names = 0;
    for (bool made = true; made; ++names) {
        const std::string name = "file " + std::to_string(names);
        made = put(Dentry{{1, 1}, {2, names}, 0, name});
        store->commit();
        (void)store->clean(4096);
        ASSERT_LT(names, 200'000U);
    }
    for (std::uint64_t i = 0; i + 1 < names; ++i) {
        const std::string name = "file " + std::to_string(i);
        ASSERT_TRUE(put(Gone{Gone::Name{{1, 1}, name}}, Need::Shrinks)) << i;
        store->commit();
        (void)store->clean(4096);
    }
    EXPECT_EQ(store->tables().names({1, 1}), nullptr);
    for (std::uint32_t i = 0; i < written; ++i) {
        ASSERT_TRUE(put(Gone{ChunkId{{1, 1}, i}}, Need::Shrinks));
        store->commit();
    }
    while (store->clean(1U << 20U)) {
    }
    store->check();
    EXPECT_GT(store->use().free_blocks + 24 * kUnitBlocks, store->use().blocks);
    reopen();
    EXPECT_TRUE(facts_of(*store).empty());
}

// There is no room left for operations that free space; the store's own mark has room.
TEST_F(StoreTest, AStoreWhoseLogIsFullIsOpenedAgainAndCleaned) {
    const auto use_up = [this] {
        for (int i = 0; put(Gone{Gone::IntentNumber{77}}, Need::Shrinks); ++i) {
            if (i % 100 == 0) {
                store->commit();
            }
        }
        store->commit();
    };
    use_up();
    reopen();
    use_up();
    reopen();
    while (store->clean(1U << 20U)) {
    }
    EXPECT_TRUE(put(Gone{Gone::IntentNumber{77}}, Need::Grows));
    store->commit();
    store->check();
}

// The log has no free unit, but there are single blocks.
TEST_F(StoreTest, ARefusedWriteGivesItsBlocksBack) {
    std::uint32_t chunks = 0;
    while (write({{1, 1}, chunks}, 0, filled(1, 1))) {
        ++chunks;
    }
    store->commit();
    for (std::uint32_t i = 0; i < chunks; i += 50) {
        ASSERT_TRUE(put(Gone{ChunkId{{1, 1}, i}}, Need::Shrinks));
    }
    store->commit();
    Inode inode;
    inode.id = {1, 1};
    while (put(inode)) {
        store->commit();
    }
    const std::uint32_t before = store->use().free_blocks;
    EXPECT_GT(before, 10U);
    EXPECT_FALSE(write(kChunk, 0, filled(9000, 1)));
    EXPECT_EQ(store->use().free_blocks, before);
    store->check();
}

}  // namespace
}  // namespace cairn::fs
