// Buffers in memory that the daemon shares.
#include "fs/client/buffers.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fs/client/cairnfs.h"
#include "tests/unit/fs_client/with_daemon.hpp"

namespace cairn::fs {
namespace {

constexpr std::size_t kPage = 4096;

std::unique_ptr<BufferPool> pool_of(std::size_t pages, std::uint64_t meeting = 1) {
    return std::make_unique<BufferPool>(SharedMemory::create(pages * kPage, SharedMemory::Pages::AsTouched).value(),
                                        meeting);
}

TEST(BufferPoolTest, GivesPagesAndTakesThemBack) {
    const auto pool = pool_of(4);
    std::uint8_t* const first = pool->take(1);
    std::uint8_t* const second = pool->take(kPage + 1);
    std::uint8_t* const third = pool->take(kPage);
    EXPECT_EQ(second, first + kPage);
    EXPECT_EQ(third, first + 3 * kPage);
    EXPECT_EQ(pool->take(1), nullptr);
    EXPECT_FALSE(pool->is_unused());
    // Neighbours become one, in any order of their return.
    EXPECT_TRUE(pool->give_back(first));
    EXPECT_TRUE(pool->give_back(third));
    EXPECT_EQ(pool->take(2 * kPage), nullptr) << "they are not side by side";
    EXPECT_TRUE(pool->give_back(second));
    EXPECT_TRUE(pool->is_unused());
    EXPECT_EQ(pool->take(4 * kPage), first);
}

TEST(BufferPoolTest, RefusesWhatIsNone) {
    const auto pool = pool_of(2);
    EXPECT_EQ(pool->take(0), nullptr);
    EXPECT_EQ(pool->take(2 * kPage + 1), nullptr);
    EXPECT_EQ(pool->take(~std::size_t{0}), nullptr);
    std::uint8_t* const buffer = pool->take(2 * kPage);
    EXPECT_FALSE(pool->give_back(buffer + kPage));
    EXPECT_FALSE(pool->give_back(buffer - 1));
    EXPECT_FALSE(pool->give_back(buffer + 2 * kPage));
    EXPECT_TRUE(pool->give_back(buffer));
    EXPECT_FALSE(pool->give_back(buffer)) << "twice";
}

TEST(BufferPoolTest, KnowsWhatLiesInIt) {
    const auto pool = pool_of(2);
    const std::uint8_t* const first = pool->take(2 * kPage);
    const auto place = [&](const std::uint8_t* at, std::size_t bytes) { return pool->place_of({at, bytes}); };
    EXPECT_EQ(place(first, 1), 0U);
    EXPECT_EQ(place(first + 5000, 2 * kPage - 5000), 5000U);
    EXPECT_EQ(place(first + 5000, 2 * kPage - 4999), std::nullopt) << "a part lies behind it";
    EXPECT_EQ(place(first - 1, 2), std::nullopt);
    EXPECT_EQ(place(first + 2 * kPage + 1, 1), std::nullopt);
}

TEST(BuffersTest, OfAnotherMeetingAreNotKnownToTheDaemon) {
    Buffers buffers;
    buffers.add(pool_of(1, 1));
    std::uint8_t* const old = buffers.take(100, 1);
    ASSERT_NE(old, nullptr);
    EXPECT_EQ(buffers.place_of({old, 100}, 1), 0U);
    EXPECT_EQ(buffers.place_of({old, 100}, 2), std::nullopt);
    EXPECT_EQ(buffers.take(100, 2), nullptr);
    buffers.add(pool_of(1, 2));
    std::uint8_t* const fresh = buffers.take(100, 2);
    ASSERT_NE(fresh, nullptr);
    EXPECT_EQ(buffers.place_of({old, 100}, 2), std::nullopt);
    old[99] = 1;  // the memory is mapped as long as it is used
    buffers.give_back(old);
    buffers.give_back(fresh);
}

// Chunks at two shards; pieces go through no slot's data.
class SharedBuffers : public WithDaemon {
protected:
    static constexpr std::size_t kBytes = 300'000;

    void SetUp() override {
        begin({.shards = 2, .local = {0, 1}});
        file = fs->open("/f", O_CREAT | O_RDWR).wait().value;
        ASSERT_NE(file, nullptr);
    }
    // Returns how many reads and writes there were, and how many of them were not in a buffer.
    std::pair<std::size_t, std::size_t> moved() {
        return daemon->with([](FakeDaemon& all) {
            const auto copied = std::ranges::count_if(all.places, [](std::uint32_t at) { return at < kBuffersAt; });
            const std::pair result{all.places.size(), static_cast<std::size_t>(copied)};
            all.places.clear();
            return result;
        });
    }
    static void fill(std::span<std::uint8_t> bytes, std::uint32_t seed) {
        for (std::size_t i = 0; i != bytes.size(); ++i) {
            bytes[i] = static_cast<std::uint8_t>((i + seed) * 2654435761U >> 13U);
        }
    }

    File* file = nullptr;
};

TEST_F(SharedBuffers, AreUsedByTheShardsThemselves) {
    const Buffer from(*fs, kBytes);
    const Buffer to(*fs, kBytes + 1000);
    ASSERT_EQ(from.bytes().size(), kBytes);
    fill(from.bytes(), 1);
    std::ranges::fill(to.bytes(), 7);
    EXPECT_EQ(fs->pwrite(*file, from.bytes(), 777).wait().value, kBytes);
    EXPECT_EQ(fs->pread(*file, to.bytes(), 777).wait().value, kBytes);
    EXPECT_TRUE(std::ranges::equal(to.bytes().first(kBytes), from.bytes()));
    EXPECT_EQ(fs->pread(*file, to.bytes().subspan(10'000, 5000), 777).wait().value, 5000U);
    EXPECT_TRUE(std::ranges::equal(to.bytes().subspan(10'000, 5000), from.bytes().first(5000)));
    const auto [all, copied] = moved();
    EXPECT_GT(all, 10U);
    EXPECT_EQ(copied, 0U);
}

TEST_F(SharedBuffers, HolesAreZerosThereToo) {
    const Buffer to(*fs, 200'000);
    std::ranges::fill(to.bytes(), 7);
    EXPECT_EQ(fs->truncate(*file, 150'000).wait().error, 0);
    EXPECT_EQ(fs->pread(*file, to.bytes(), 0).wait().value, 150'000U);
    EXPECT_TRUE(std::ranges::all_of(to.bytes().first(150'000), [](std::uint8_t byte) { return byte == 0; }));
}

TEST_F(SharedBuffers, OthersAreCopiedAsEver) {
    const Buffer shared(*fs, 100);
    std::vector<std::uint8_t> own(kBytes);
    fill(own, 2);
    EXPECT_EQ(fs->pwrite(*file, own, 0).wait().value, kBytes);
    const auto [all, copied] = moved();
    EXPECT_EQ(all, copied);
}

TEST_F(SharedBuffers, EndWithTheRoom) {
    const Buffer all(*fs, 1U << 20U);
    EXPECT_FALSE(all.bytes().empty());
    EXPECT_TRUE(Buffer(*fs, 1).bytes().empty());
    daemon->with([](FakeDaemon& has) { has.buffer_bytes = 0; });
    const auto other = connect();
    EXPECT_TRUE(Buffer(*other, 1).bytes().empty()) << "the daemon shares nothing";
    EXPECT_EQ(other->stat("/f").wait().error, 0);
}

// Calls under way at the daemon's death are sent again, and the new daemon does not know the buffer.
TEST_F(SharedBuffers, AreCopiedOnceTheDaemonWasLost) {
    const Buffer from(*fs, kBytes);
    fill(from.bytes(), 3);
    hold_answers(true);
    Outcome<std::uint64_t> written;
    bool has_ended = false;
    struct Told {
        Outcome<std::uint64_t>& outcome;
        bool& has_ended;
    } told{written, has_ended};
    fs->pwrite(*file, from.bytes(), 0)
        .start(
            [](void* context, Outcome<std::uint64_t> outcome) {
                static_cast<Told*>(context)->outcome = outcome;
                static_cast<Told*>(context)->has_ended = true;
            },
            &told);
    daemon->stop();
    daemon->start();
    hold_answers(false);
    while (!has_ended) {
        fs->wait();
    }
    EXPECT_EQ(written.value, kBytes);
    const auto [all, copied] = moved();
    EXPECT_GT(all, 0U);
    EXPECT_EQ(all, copied);
    const Buffer fresh(*fs, kBytes);
    ASSERT_EQ(fresh.bytes().size(), kBytes) << "the new daemon shares memory, too";
    EXPECT_EQ(fs->pread(*file, fresh.bytes(), 0).wait().value, kBytes);
    EXPECT_EQ(moved().second, 0U);
    EXPECT_TRUE(std::ranges::equal(fresh.bytes(), from.bytes()));
}

TEST_F(SharedBuffers, AreHadFromC) {
    cairnfs* c = nullptr;
    ASSERT_EQ(cairnfs_connect(daemon->socket().c_str(), 0, &c, nullptr, 0), 0);
    void* const buffer = cairnfs_buffer_alloc(c, 10'000);
    ASSERT_NE(buffer, nullptr);
    cairnfs_file* opened = nullptr;
    ASSERT_EQ(cairnfs_open(c, "/c", O_CREAT | O_RDWR, 0600, &opened), 0);
    std::memset(buffer, 'c', 10'000);
    EXPECT_EQ(cairnfs_pwrite(c, opened, buffer, 10'000, 0), 10'000);
    std::memset(buffer, 0, 10'000);
    EXPECT_EQ(cairnfs_pread(c, opened, buffer, 10'000, 0), 10'000);
    EXPECT_EQ(std::string(static_cast<const char*>(buffer), 10'000), std::string(10'000, 'c'));
    EXPECT_EQ(moved().second, 0U);
    EXPECT_EQ(cairnfs_buffer_alloc(c, 2U << 20U), nullptr);
    cairnfs_buffer_free(c, buffer);
    cairnfs_buffer_free(c, nullptr);
    EXPECT_EQ(cairnfs_close(c, opened), 0);
    cairnfs_disconnect(c);
}

}  // namespace
}  // namespace cairn::fs
