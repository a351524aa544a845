// Descriptors that count events, with threads that take an event back while others read one.
#include "lib/ibverbs/event_count.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <thread>

#include "tests/support/sleeping_thread.hpp"

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

// The event wakes the thread, and the thread that cancels it runs first: both share one CPU, which the woken thread
// gets last.
TEST_F(EventCountTest, AThreadThatIsCancelledLeavesTheEventToOthers) {
    for (int i = 0; i < 10; ++i) {
        std::atomic<pid_t> thread{0};
        std::atomic<bool> has_one{false};
        std::thread waits([this, &thread, &has_one, cpu = sched_getcpu()] {
            test::be_last_on(cpu);
            thread = gettid();
            has_one = count.wait();
        });
        test::await_sleep(thread);
        count.show_one();
        ASSERT_EQ(pthread_cancel(waits.native_handle()), 0);
        waits.join();
        EXPECT_NE(is_readable(), has_one) << "round " << i;
        if (!has_one) {
            count.take_back();
        }
    }
}

std::atomic<int> interruptions{0};

TEST_F(EventCountTest, ASignalEndsAWaitIfItEndsARead) {
    for (const int flags : {0, SA_RESTART}) {
        struct sigaction counts {};
        struct sigaction before {};
        counts.sa_handler = [](int) { ++interruptions; };
        counts.sa_flags = flags;
        ASSERT_EQ(sigaction(SIGUSR1, &counts, &before), 0);
        interruptions = 0;
        std::atomic<pid_t> thread{0};
        bool has_one = false;
        int reason = 0;
        std::thread waits([&] {
            thread = gettid();
            has_one = count.wait();
            reason = errno;
        });
        test::await_sleep(thread);
        ASSERT_EQ(pthread_kill(waits.native_handle(), SIGUSR1), 0);
        while (interruptions == 0) {
            std::this_thread::yield();
        }
        if (flags == SA_RESTART) {
            count.show_one();
        }
        waits.join();
        EXPECT_EQ(has_one, flags == SA_RESTART);
        EXPECT_TRUE(has_one || reason == EINTR) << reason;
        ASSERT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
    }
}

// A thread that takes back holds a lock that the maker of the next event needs.
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
