// Blocks taken and given back, compared with a plain list.
#include "fs/store/blocks.hpp"

#include <gtest/gtest.h>

#include "lib/sim/random.hpp"

namespace cairn::fs {
namespace {

constexpr std::uint32_t kBlocks = 20 * kUnitBlocks;

BlockMap all_free() {
    BlockMap map(kBlocks);
    EXPECT_TRUE(map.give_back({0, kBlocks}));
    return map;
}

TEST(Blocks, AreTakenAtFirst) {
    BlockMap map(kBlocks);
    EXPECT_EQ(map.free_blocks(), 0U);
    EXPECT_FALSE(map.allocate(1).has_value());
    EXPECT_FALSE(map.allocate_unit().has_value());
    EXPECT_FALSE(map.take({0, 1}));
}

TEST(Blocks, OfOneWriteLieTogether) {
    BlockMap map = all_free();
    EXPECT_EQ(map.allocate(100), (BlockRun{0, 100}));
    EXPECT_EQ(map.allocate(256), (BlockRun{100, 256}));
    EXPECT_EQ(map.free_blocks(), kBlocks - 356);
    ASSERT_TRUE(map.give_back({50, 10}));
    EXPECT_EQ(map.allocate(1), (BlockRun{356, 1})) << "behind the last one";
}

TEST(Blocks, AroundTheEndWhatIsFreeIsFound) {
    BlockMap map = all_free();
    ASSERT_EQ(map.allocate(kBlocks)->count, kBlocks);
    ASSERT_TRUE(map.give_back({63, 2}));
    ASSERT_TRUE(map.give_back({kBlocks - 1, 1}));
    EXPECT_EQ(map.allocate(8), (BlockRun{63, 2})) << "over a word's end";
    EXPECT_EQ(map.allocate(8), (BlockRun{kBlocks - 1, 1})) << "not over the region's";
    EXPECT_FALSE(map.allocate(1).has_value());
}

TEST(Blocks, AUnitIsWhollyFree) {
    BlockMap map = all_free();
    EXPECT_EQ(map.allocate_unit(), 19U);
    ASSERT_TRUE(map.take({18 * kUnitBlocks + 5, 1}));
    EXPECT_EQ(map.allocate_unit(), 17U);
    ASSERT_TRUE(map.give_back({19 * kUnitBlocks, kUnitBlocks}));
    for (int i = 0; i < 18; ++i) {
        EXPECT_TRUE(map.allocate_unit().has_value());
    }
    EXPECT_FALSE(map.allocate_unit().has_value());
    EXPECT_EQ(map.free_blocks(), kUnitBlocks - 1);
}

TEST(Blocks, AUnitIsNotTakenThatLeavesTooFewBlocks) {
    BlockMap map(2 * kUnitBlocks);
    ASSERT_TRUE(map.give_back({0, kUnitBlocks + 10}));
    EXPECT_FALSE(map.allocate_unit(11).has_value());
    EXPECT_EQ(map.free_blocks(), kUnitBlocks + 10);
    EXPECT_TRUE(map.allocate_unit(10).has_value());
}

TEST(Blocks, NobodyTakesOrGivesTwice) {
    BlockMap map = all_free();
    ASSERT_TRUE(map.take({60, 10}));
    EXPECT_FALSE(map.take({50, 11}));
    EXPECT_FALSE(map.take({69, 1}));
    EXPECT_TRUE(map.take({70, 1}));
    EXPECT_FALSE(map.give_back({59, 5}));
    EXPECT_FALSE(map.take({kBlocks - 1, 2}));
    EXPECT_FALSE(map.take({0xffffffffU, 2}));
    EXPECT_EQ(map.free_blocks(), kBlocks - 11);
}

TEST(Blocks, WalkAtRandom) {
    sim::Random random(5);
    BlockMap map = all_free();
    std::vector<bool> free(kBlocks, true);
    std::vector<BlockRun> taken;
    std::uint32_t count = kBlocks;
    const auto mark = [&](const BlockRun& run, bool to) {
        for (std::uint32_t i = 0; i != run.count; ++i) {
            ASSERT_NE(free[run.first + i], to);
            free[run.first + i] = to;
        }
        count = to ? count + run.count : count - run.count;
    };
    for (int i = 0; i < 20'000; ++i) {
        if (random.below(2) == 0 && !taken.empty()) {
            const std::size_t which = random.below(taken.size());
            ASSERT_TRUE(map.give_back(taken[which]));
            mark(taken[which], true);
            taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(which));
        } else if (random.below(8) == 0) {
            if (const auto unit = map.allocate_unit()) {
                taken.push_back({*unit * kUnitBlocks, kUnitBlocks});
                mark(taken.back(), false);
            }
        } else if (const auto run = map.allocate(static_cast<std::uint32_t>(random.between(1, 90)))) {
            taken.push_back(*run);
            mark(*run, false);
        } else {
            ASSERT_EQ(count, 0U);
        }
        ASSERT_EQ(map.free_blocks(), count);
    }
    for (std::uint32_t i = 0; i != kBlocks; ++i) {
        ASSERT_EQ(map.is_free(i), free[i]);
    }
}

}  // namespace
}  // namespace cairn::fs
