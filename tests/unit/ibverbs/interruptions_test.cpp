// Signals that come while a thread sleeps for an event: they end the sleep as they end a read().
#include "lib/ibverbs/interruptions.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <thread>

#include "tests/support/verbs_devices.hpp"
#include "tests/support/verbs_end.hpp"

namespace cairn::test {
namespace {

std::atomic<int> rang{0};

// A thread sleeps for an event of `to`, which another thread makes.
class InterruptionsTest : public testing::Test {
protected:
    void SetUp() override {
        configure_devices();
        rang.store(0);
        near = open_device("left");
        far = open_device("right");
        ASSERT_TRUE(near != nullptr && far != nullptr);
        from = std::make_unique<VerbsEnd>(near);
        to = std::make_unique<VerbsEnd>(far);
        from->connect(to->name());
        to->connect(from->name());
        ASSERT_EQ(to->post_receive(1, 0, 8), 0);
        ASSERT_EQ(ibv_req_notify_cq(to->queue, 0), 0);
    }
    void TearDown() override {
        for (const int each : {SIGUSR1, SIGUSR2}) {
            signal(each, SIG_DFL);
        }
        to.reset();
        from.reset();
        EXPECT_EQ(ibv_close_device(near), 0);
        EXPECT_EQ(ibv_close_device(far), 0);
    }
    static void handle(int number, int flags) {
        struct sigaction wanted {};
        wanted.sa_handler = [](int) { ++rang; };
        wanted.sa_flags = flags;
        ASSERT_EQ(sigaction(number, &wanted, nullptr), 0);
        std::this_thread::sleep_for(std::chrono::nanoseconds(ibverbs::Interruptions::kLately.ns));
    }
    // Returns the result of the sleep, while the thread gets the signal `number` again and again. Makes the event after
    // that if nothing else can end the sleep.
    int sleep_while_sent(int number, bool makes_event) {
        std::atomic<bool> slept{false};
        std::jthread other([&, sleeper = pthread_self()] {
            for (int i = 0; !slept.load() && (i < 30 || !makes_event); ++i) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                pthread_kill(sleeper, number);
            }
            if (makes_event) {
                EXPECT_EQ(from->post_send(2, 0, 8), 0);
            }
        });
        ibv_cq* fired = nullptr;
        void* context = nullptr;
        const int result = ibv_get_cq_event(to->channel, &fired, &context) == 0 ? 0 : errno;
        slept.store(true);
        other.join();
        if (result == 0) {
            ibv_ack_cq_events(fired, 1);
        }
        EXPECT_GT(rang.load(), 0);
        return result;
    }

    ibv_context* near = nullptr;
    ibv_context* far = nullptr;
    std::unique_ptr<VerbsEnd> from;
    std::unique_ptr<VerbsEnd> to;
};

TEST_F(InterruptionsTest, AHandlerThatRestartsCallsDoesNotEndTheSleep) {
    handle(SIGUSR1, SA_RESTART);
    EXPECT_EQ(sleep_while_sent(SIGUSR1, true), 0);
}

TEST_F(InterruptionsTest, AnotherHandlerDoes) {
    handle(SIGUSR1, 0);
    EXPECT_EQ(sleep_while_sent(SIGUSR1, false), EINTR);
    EXPECT_LT(rang.load(), 10) << "the first that found it asleep";
}

TEST_F(InterruptionsTest, EachHandlerOfBothKindsDoesAsItDoesInRead) {
    handle(SIGUSR1, SA_RESTART);
    handle(SIGUSR2, 0);
    EXPECT_EQ(sleep_while_sent(SIGUSR2, false), EINTR);
    EXPECT_EQ(sleep_while_sent(SIGUSR1, true), 0);
}

// Programs have handlers of faults that only write the place, and do not expect effects on calls.
TEST_F(InterruptionsTest, HandlersOfFaultsAndOfBlockedSignalsDoNotCount) {
    handle(SIGUSR1, SA_RESTART);
    handle(SIGUSR2, 0);
    struct sigaction before {};
    sigaction(SIGFPE, nullptr, &before);
    handle(SIGFPE, 0);
    EXPECT_TRUE(ibverbs::Interruptions::look().are_mixed());
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &one, nullptr);
    const ibverbs::Interruptions found = ibverbs::Interruptions::look();
    pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
    sigaction(SIGFPE, &before, nullptr);
    EXPECT_TRUE(found.restart);
    EXPECT_FALSE(found.end);
}

}  // namespace
}  // namespace cairn::test
