// lib/mem's BufferPool: sizes, exhaustion, merging, and long random histories with the invariants checked.
#include "lib/mem/buffer_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "lib/mem/region.hpp"

namespace cairn::mem {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

class BufferPoolTest : public testing::Test {
protected:
    explicit BufferPoolTest(std::size_t bytes = kMiB)
        : region(Region::map(bytes, PageWish::NoHuge).value()), pool(region.bytes().first(bytes)) {}

    std::vector<Buffer> take_all(std::size_t bytes) {
        std::vector<Buffer> taken;
        for (Buffer buffer = pool.try_allocate(bytes); buffer.valid(); buffer = pool.try_allocate(bytes)) {
            taken.push_back(buffer);
        }
        return taken;
    }
    void give_back(const std::vector<Buffer>& buffers) {
        for (const Buffer& buffer : buffers) {
            pool.release(buffer);
        }
    }

    Region region;
    BufferPool pool;
};

TEST_F(BufferPoolTest, RoundsUpToPowersOfTwoAndAlignsToCacheLines) {
    for (const auto& [asked, given] : std::vector<std::pair<std::size_t, std::uint32_t>>{
             {0, 64}, {1, 64}, {64, 64}, {65, 128}, {4096, 4096}, {4097, 8192}, {kMiB / 2 - 1, kMiB / 2}}) {
        const Buffer buffer = pool.try_allocate(asked);
        ASSERT_TRUE(buffer.valid()) << asked;
        EXPECT_EQ(buffer.capacity_bytes, given);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data) % 64, 0U);
        pool.release(buffer);
    }
    EXPECT_EQ(pool.live_buffers(), 0U);
    pool.check_invariants();
}

TEST_F(BufferPoolTest, LendsEveryByteOnceAndThenSaysEmpty) {
    std::vector<Buffer> taken = take_all(64);
    EXPECT_EQ(taken.size(), kMiB / 64);
    EXPECT_EQ(pool.live_bytes(), kMiB);
    std::sort(taken.begin(), taken.end(), [](const Buffer& a, const Buffer& b) { return a.data < b.data; });
    for (std::size_t i = 1; i < taken.size(); ++i) {
        ASSERT_EQ(taken[i].data - taken[i - 1].data, 64);
    }
    pool.check_invariants();
    give_back(taken);
    EXPECT_EQ(pool.live_buffers(), 0U);
    EXPECT_EQ(pool.live_bytes(), 0U);
}

TEST_F(BufferPoolTest, MakesOneLargeBufferOfManySmallOnes) {
    give_back(take_all(64));
    pool.check_invariants();
    const Buffer whole = pool.try_allocate(kMiB);
    ASSERT_TRUE(whole.valid());
    EXPECT_EQ(whole.data, region.bytes().data());
    EXPECT_FALSE(pool.try_allocate(1).valid());
    pool.release(whole);
}

TEST_F(BufferPoolTest, IsNotWornDownBySmallBuffersThatStay) {
    const Buffer stays = pool.try_allocate(64);
    const Buffer half = pool.try_allocate(kMiB / 2);
    ASSERT_TRUE(half.valid());
    EXPECT_FALSE(pool.try_allocate(kMiB / 2).valid());
    EXPECT_TRUE(pool.try_allocate(kMiB / 4).valid());
    EXPECT_TRUE(stays.valid());
    pool.check_invariants();
}

TEST_F(BufferPoolTest, GivesTheBufferJustReturnedAgain) {
    const Buffer first = pool.try_allocate(200);
    pool.release(first);
    EXPECT_EQ(pool.try_allocate(256).data, first.data);
}

TEST_F(BufferPoolTest, RefusesWhatIsLargerThanEveryClass) {
    EXPECT_FALSE(pool.try_allocate(BufferPool::kLargestBytes).valid());  // larger than the pool
    EXPECT_FALSE(pool.try_allocate(std::size_t{BufferPool::kLargestBytes} + 1).valid());
    EXPECT_FALSE(pool.try_allocate(~std::size_t{0}).valid());
    pool.release(Buffer{});
    pool.check_invariants();
}

using BufferPoolDeathTest = BufferPoolTest;

TEST_F(BufferPoolDeathTest, AssertsAgainstGivingBackTwiceAndWhatIsNoBuffer) {
    const Buffer buffer = pool.try_allocate(128);
    EXPECT_DEATH(pool.release({buffer.data + 64, 64}), "does not hold");
    EXPECT_DEATH(pool.release({buffer.data + 1, 64}), "does not hold");
    pool.release(buffer);
    EXPECT_DEATH(pool.release(buffer), "does not hold");
    const Buffer free_block = pool.try_allocate(64);
    EXPECT_DEATH(pool.release({free_block.data + 64, 64}), "does not hold");
}

TEST(BufferPool, UsesARegionOfAnySize) {
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{63}, std::size_t{64}, std::size_t{64 * 7 + 5}, 3 * kMiB + 192}) {
        const Region region = Region::map(std::max<std::size_t>(bytes, 1), PageWish::NoHuge).value();
        BufferPool pool(region.bytes().first(bytes));
        pool.check_invariants();
        EXPECT_EQ(pool.capacity_bytes(), bytes / 64 * 64);
        std::size_t lent = 0;
        while (pool.try_allocate(64).valid()) {
            ++lent;
        }
        EXPECT_EQ(lent, bytes / 64);
        pool.check_invariants();
    }
}

TEST(BufferPool, HoldsALargestMessageWithItsHeaders) {
    const Region region = Region::map(2 * std::size_t{BufferPool::kLargestBytes}, PageWish::NoHuge).value();
    BufferPool pool(region.bytes());
    const Buffer first = pool.try_allocate(16 * kMiB + 16);
    const Buffer second = pool.try_allocate(16 * kMiB + 16);
    ASSERT_TRUE(first.valid());
    ASSERT_TRUE(second.valid());
    EXPECT_FALSE(pool.try_allocate(64).valid());
    std::memset(first.data, 1, first.capacity_bytes);
    std::memset(second.data, 2, second.capacity_bytes);
    EXPECT_EQ(first.data[first.capacity_bytes - 1], 1);
    pool.release(first);
    EXPECT_TRUE(pool.try_allocate(64).valid());
}

std::uint64_t next_random(std::uint64_t& state) {  // SplitMix64: the same histories on every machine
    state += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31U);
}

// Fills each buffer with a pattern of its own and checks it when it is given back: nothing else may have written there,
// also not the pool's own links.
struct Stamped {
    Buffer buffer;
    std::uint8_t stamp;

    [[nodiscard]] bool intact() const {
        return std::all_of(buffer.data, buffer.data + buffer.capacity_bytes,
                           [this](std::uint8_t byte) { return byte == stamp; });
    }
};

TEST(BufferPool, KeepsItsInvariantsThroughRandomHistories) {
    const std::size_t bytes = 64 * 1024 + 64 * 37;
    const Region region = Region::map(bytes, PageWish::NoHuge).value();
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        std::uint64_t random = seed;
        BufferPool pool(region.bytes().first(bytes));
        std::vector<Stamped> lent;
        bool was_empty = false;
        for (int step = 0; step < 2'000; ++step) {
            if (next_random(random) % 5 < 3) {
                const Buffer buffer = pool.try_allocate(next_random(random) % (64U << (next_random(random) % 9)));
                was_empty = was_empty || !buffer.valid();
                if (buffer.valid()) {
                    const auto stamp = static_cast<std::uint8_t>(step);
                    std::memset(buffer.data, stamp, buffer.capacity_bytes);
                    lent.push_back({buffer, stamp});
                }
            } else if (!lent.empty()) {
                std::swap(lent[next_random(random) % lent.size()], lent.back());
                ASSERT_TRUE(lent.back().intact()) << "seed " << seed << " step " << step;
                pool.release(lent.back().buffer);
                lent.pop_back();
            }
            if (step % 16 == 0) {
                pool.check_invariants();
            }
            ASSERT_EQ(pool.live_buffers(), lent.size());
        }
        EXPECT_TRUE(was_empty) << "seed " << seed << ": the history never reached exhaustion";
        for (const Stamped& stamped : lent) {
            ASSERT_TRUE(stamped.intact());
            pool.release(stamped.buffer);
        }
        const Buffer whole = pool.try_allocate(std::size_t{64} * 1024);
        EXPECT_TRUE(whole.valid()) << "seed " << seed << ": freed memory did not merge";
        pool.check_invariants();
    }
}

}  // namespace
}  // namespace cairn::mem
