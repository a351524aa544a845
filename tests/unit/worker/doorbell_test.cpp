// Doorbells: workers that sleep in a socket, or nap over a port in memory, are woken by another process.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <vector>

#include "lib/base/doorbell.hpp"
#include "lib/port/uring_port.hpp"
#include "lib/worker/worker.hpp"
#include "tests/support/loopback.hpp"
#include "tests/support/shard.hpp"
#include "tests/support/wire_port.hpp"

namespace cairn::worker {
namespace {

using test::ask;
using test::await_sleep;
using test::map_channel;
using test::Process;
using test::Shard;

bool is_readable(int fd, int timeout_ms = 0) {
    pollfd one{fd, POLLIN, 0};
    return poll(&one, 1, timeout_ms) == 1;
}

// Returns how often this thread went to sleep.
long sleeps_of_this_thread() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

// The parameter is true for a worker that sleeps in a socket, false for one that naps.
class DoorbellTest : public testing::TestWithParam<bool> {
protected:
    static constexpr Duration kLong = seconds(5);  // a bound against hanging

    void SetUp() override {
        ASSERT_NE(channel, nullptr);
        if (GetParam()) {
            port::UringPortConfig config;
            config.local = net::IpAddress::parse(test::loopback(1)).value();
            port_ = port::UringPort::open(config).value();
        } else {
            port_ = std::make_unique<test::WirePort>("10.0.0.1", 64);
        }
        worker = Worker::create(*port_, {.max_queue_pairs = 4, .max_regions = 4}, now).value();
    }
    // Returns the number of sleeps without an event after which the test fails.
    [[nodiscard]] int many_sleeps() const { return worker->can_wait() ? 2 : 50'000; }
    // Sleeps and takes turns until `done`.
    template <class Done>
    [[nodiscard]] bool sleep_until(const Done& done) {
        for (int i = 0; i < many_sleeps() && !done(); ++i) {
            worker->wait(now, now + kLong);
            worker->turn(now);
        }
        return done();
    }

    Instant now{1'000};
    std::unique_ptr<test::Channel, test::Unmap> channel = map_channel();
    std::unique_ptr<port::Port> port_;
    std::unique_ptr<Worker> worker;
};

TEST_P(DoorbellTest, AnotherProcessWakesAWorkerThatIsAsleep) {
    Shard shard(*worker, *channel);
    Process client([this, &shard] {
        await_sleep(*channel);
        while (!ask(*channel, shard.bell->fd())) {  // a nap may have ended
            await_sleep(*channel);
        }
    });
    ASSERT_TRUE(sleep_until([this, &shard] { return channel->answered != 0 && shard.bell->wakes() != 0; }));
    EXPECT_TRUE(client.wait());
    EXPECT_EQ(channel->woke, 1U);
    EXPECT_EQ(shard.bell->wakes(), 1U);
}

// If no thread goes to sleep, the end of a nap has not woken it.
TEST_P(DoorbellTest, ARingAfterTheLastLookKeepsTheWorkerFromSleeping) {
    constexpr int kTimes = 1'000;
    Shard shard(*worker, *channel);
    const auto count_sleeps = [this] {
        const long before = sleeps_of_this_thread();
        for (int i = 0; i < kTimes; ++i) {
            worker->wait(now, now + Worker::kNap);
            worker->turn(now);
        }
        return sleeps_of_this_thread() - before;
    };
    EXPECT_GT(count_sleeps(), kTimes * 9 / 10);
    shard.last_look = [&shard] { EXPECT_TRUE(ring(shard.channel.word, shard.bell->fd())); };
    EXPECT_LT(count_sleeps(), kTimes / 10);
    EXPECT_EQ(shard.bell->wakes(), std::uint64_t{kTimes});
}

TEST_P(DoorbellTest, WhatIsAskedBeforeTheLastLookIsNotSleptThrough) {
    Shard shard(*worker, *channel);
    EXPECT_FALSE(ask(*channel, shard.bell->fd()));  // the worker is not asleep: no system call
    worker->wait(now, now + kLong);
    worker->turn(now);
    EXPECT_EQ(channel->answered, 1U);
    EXPECT_EQ(shard.bell->wakes(), 0U);
    EXPECT_FALSE(ask(*channel, shard.bell->fd()));  // nor after its turn
}

// The worker sleeps after each turn. In a socket it sleeps until it is woken.
TEST_P(DoorbellTest, NoneOfAHundredThousandRingsIsLost) {
    constexpr std::uint32_t kRings = 100'000;
    Shard shard(*worker, *channel);
    Process client([this, &shard] {
        for (std::uint32_t i = 1; i <= kRings; ++i) {
            if (i % 2 == 0) {  // otherwise at any moment on its way into sleep
                await_sleep(*channel);
            }
            (void)ask(*channel, shard.bell->fd());
            while (channel->answered.load(std::memory_order_acquire) != i) {
                sched_yield();
            }
        }
    });
    for (int in_vain = 0; channel->answered != kRings;) {
        const std::uint32_t before = channel->answered;
        worker->wait(now, now + kLong);
        worker->turn(now);
        in_vain = channel->answered != before ? 0 : in_vain + 1;
        ASSERT_LT(in_vain, many_sleeps()) << "slept through " << before + 1;
    }
    EXPECT_TRUE(client.wait());
    worker->wait(now, now);  // the last ring may have been answered before its write
    worker->turn(now);
    EXPECT_GT(channel->woke, kRings / 4);
    EXPECT_LE(shard.bell->wakes(), channel->woke);
    EXPECT_GT(shard.bell->wakes(), channel->woke / 2);
}

TEST_P(DoorbellTest, EachIsHeardByItselfAlsoIfManyRingAtATime) {
    constexpr std::size_t kBells = 80;
    std::vector<DoorbellWord> words(kBells);
    std::vector<std::unique_ptr<Doorbell>> bells;
    bells.reserve(kBells);
    for (DoorbellWord& word : words) {
        bells.push_back(worker->add_doorbell(word).value());
    }
    worker->wait(now, now);
    for (std::size_t i = 0; i < kBells; i += 2) {
        EXPECT_TRUE(ring(words[i], bells[i]->fd()));
        EXPECT_FALSE(ring(words[i], bells[i]->fd()));  // one ring is enough
    }
    for (int i = 0; i < 3; ++i) {
        worker->turn(now);
        worker->wait(now, now + Worker::kNap);
    }
    worker->turn(now);
    for (std::size_t i = 0; i < kBells; ++i) {
        EXPECT_EQ(bells[i]->wakes(), i % 2 == 0 ? 1U : 0U) << i;
    }
}

struct Postcard final : Letter {
    void open(Worker&, Instant) noexcept override { ++opened; }
    void discard() noexcept override {}
    std::atomic<int> opened{0};
};

TEST_P(DoorbellTest, MailWakesAWorkerThatHasADoorbell) {
    constexpr int kTimes = 100;
    Shard shard(*worker, *channel);
    Postcard note;
    const Address address = worker->quiet_address();
    shard.last_look = [&] { EXPECT_TRUE(address.send(note).ok()); };
    const long before = sleeps_of_this_thread();
    for (int i = 1; i <= kTimes; ++i) {
        worker->wait(now, now + Worker::kNap);
        worker->turn(now);
        EXPECT_EQ(note.opened, i);
    }
    EXPECT_LT(sleeps_of_this_thread() - before, kTimes / 10);
    EXPECT_EQ(shard.bell->wakes(), 0U);
}

TEST_P(DoorbellTest, OneThatEndedWakesNobodyThoughTheOtherProcessHasItStill) {
    Shard stays(*worker, *channel);
    auto other = map_channel();
    int kept = -1;
    {
        Shard leaves(*worker, *other);
        kept = dup(leaves.bell->fd());
        worker->wait(now, now);
        EXPECT_EQ(other->word.asleep, 1U);
    }
    EXPECT_EQ(other->word.asleep, 0U);  // ringing makes no system call
    worker->turn(now);
    const long before = sleeps_of_this_thread();
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(eventfd_write(kept, 1), 0);
        worker->wait(now, now + Worker::kNap);
        worker->turn(now);
        EXPECT_EQ(other->word.asleep, 0U);
    }
    EXPECT_GT(sleeps_of_this_thread() - before, 90);
    close(kept);
}

// A client may do anything with its word and its descriptor.
TEST_P(DoorbellTest, WhoAbusesItsDoorbellKeepsNobodyElseFromWakingTheWorkerNorTheWorkerFromSleeping) {
    Shard honest(*worker, *channel);
    auto other = map_channel();
    Shard abused(*worker, *other);
    other->word.asleep = ~0U;
    EXPECT_TRUE(ring(other->word, abused.bell->fd()));  // its word says that the worker sleeps, though it is awake
    EXPECT_EQ(eventfd_write(abused.bell->fd(), ~std::uint64_t{0} - 2), 0);
    EXPECT_NE(eventfd_write(abused.bell->fd(), 1), 0);  // full
    worker->wait(now, now + kLong);
    worker->turn(now);
    EXPECT_GE(abused.bell->wakes(), 1U);
    const long before = sleeps_of_this_thread();
    for (int i = 0; i < 100; ++i) {
        worker->wait(now, now + Worker::kNap);
        other->word.asleep = static_cast<std::uint32_t>(i);
        worker->turn(now);
    }
    EXPECT_GT(sleeps_of_this_thread() - before, 90);
    honest.last_look = [&honest] { EXPECT_TRUE(ring(honest.channel.word, honest.bell->fd())); };
    worker->wait(now, now + kLong);
    worker->turn(now);
    EXPECT_EQ(honest.bell->wakes(), 1U);
}

TEST_P(DoorbellTest, WithoutADescriptorLeftTheOperatorHearsWhatHelps) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int lowest_free = dup(0);
    close(lowest_free);
    for (rlim_t more = 0; more < 2; ++more) {  // none, or one for the epoll alone
        const rlimit scarce{static_cast<rlim_t>(lowest_free) + more, before.rlim_max};
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &scarce), 0);
        const auto refused = worker->add_doorbell(channel->word);
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
        ASSERT_FALSE(refused.ok());
        EXPECT_NE(refused.error().text().find(worker->name()), std::string::npos) << refused.error().text();
        EXPECT_NE(refused.error().text().find("ulimit -n"), std::string::npos) << refused.error().text();
    }
    EXPECT_TRUE(worker->add_doorbell(channel->word).ok());
}

INSTANTIATE_TEST_SUITE_P(Ports, DoorbellTest, testing::Bool(),
                         [](const auto& each) { return each.param ? "Socket" : "Memory"; });

// The same doorbells in event loops.
class DoorbellOfALoopTest : public DoorbellTest {
protected:
    void check_descriptor() {
        Shard shard(*worker, *channel);
        const int fd = worker->descriptor().value();
        EXPECT_EQ(worker->prepare_sleep(now), Instant::never());
        EXPECT_FALSE(is_readable(fd));
        const auto other = map_channel();
        Shard late(*worker, *other);  // attached while the worker is about to sleep
        EXPECT_TRUE(ask(*other, late.bell->fd()));
        EXPECT_TRUE(is_readable(fd, 2'000));
        EXPECT_EQ(worker->prepare_sleep(now), now);  // twice before its turn
        EXPECT_FALSE(ring(other->word, late.bell->fd()));
        EXPECT_TRUE(is_readable(fd));
        worker->turn(now);
        EXPECT_EQ(other->answered, 1U);
        EXPECT_EQ(worker->prepare_sleep(now), Instant::never());
        EXPECT_FALSE(is_readable(fd));
        EXPECT_TRUE(ask(*channel, shard.bell->fd()));
        EXPECT_TRUE(is_readable(fd, 2'000));
        worker->turn(now);
        EXPECT_EQ(channel->answered, 1U);
        EXPECT_FALSE(is_readable(fd));
    }
};

TEST_P(DoorbellOfALoopTest, TheWorkersDescriptorIsReadableForARingAndQuietOtherwise) {
    check_descriptor();
}

TEST_P(DoorbellOfALoopTest, SoIsADescriptorThatWasThereBeforeTheFirstDoorbell) {
    ASSERT_TRUE(worker->descriptor().ok());
    check_descriptor();
}

INSTANTIATE_TEST_SUITE_P(Ports, DoorbellOfALoopTest, testing::Values(true), [](const auto&) { return "Socket"; });

}  // namespace
}  // namespace cairn::worker
