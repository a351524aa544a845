// Descriptors that count events, while those who take back an event and those who read one meet.
#include "lib/ibverbs/event_count.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <mutex>
#include <thread>

namespace cairn::ibverbs {
namespace {

class EventCountTest : public testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(count.open()); }
    void TearDown() override { count.close(); }
    [[nodiscard]] bool is_readable() const {
        pollfd waiting{count.fd, POLLIN, 0};
        return ::poll(&waiting, 1, 0) == 1;
    }

    EventCount count;
};

TEST_F(EventCountTest, AnEventIsTakenBackBeforeItIsShownOrAfter) {
    ++count.not_shown;
    count.take_back();
    EXPECT_EQ(count.not_shown, 0U);
    EXPECT_FALSE(is_readable());
    count.show_one();
    count.show_one();
    count.take_back();
    EXPECT_TRUE(is_readable());
    EXPECT_TRUE(count.wait());
    EXPECT_FALSE(is_readable());
}

// Who takes back holds a lock that whoever shows the next event needs.
TEST_F(EventCountTest, WhoTakesBackDoesNotWaitForAReaderThatWasQuicker) {
    ASSERT_EQ(fcntl(count.fd, F_GETFL) & O_NONBLOCK, 0);
    constexpr int kRounds = 20'000;
    std::mutex lock;
    std::atomic<bool> ends{false};
    std::thread reader([&] {
        while (!ends.load()) {
            EXPECT_TRUE(count.wait());
        }
    });
    for (int round = 0; round < kRounds; ++round) {
        {
            const std::lock_guard hold(lock);
            count.show_one();
        }
        const std::lock_guard hold(lock);
        count.take_back();
    }
    ends.store(true);
    count.show_one();
    reader.join();
}

}  // namespace
}  // namespace cairn::ibverbs
