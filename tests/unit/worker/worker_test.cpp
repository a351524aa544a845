// A worker's turns, tenants, mail and sleep, on ports in memory and on sockets.
#include "lib/worker/worker.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "lib/port/uring_port.hpp"
#include "tests/support/wire_port.hpp"

namespace cairn::worker {
namespace {

struct Guest final : Tenant {
    explicit Guest(Worker& worker, Worker::Calls calls = Worker::Calls::OnTurnAndSent)
        : tenancy(worker.add(*this, calls)) {}
    bool on_turn(Instant now) noexcept override {
        ++turns;
        last = now;
        if (acts) {
            acts();
        }
        return busy;
    }
    void on_sent() noexcept override { ++sent; }
    [[nodiscard]] Instant next_deadline() const noexcept override { return due; }

    int turns = 0;
    int sent = 0;
    bool busy = false;
    Instant last{};
    Instant due = Instant::never();
    std::function<void()> acts;
    Tenancy tenancy;
};

struct Note final : Letter {
    void open(Worker& worker, Instant) noexcept override {
        ++opened;
        if (acts) {
            acts(worker);
        }
    }
    void discard() noexcept override { ++discarded; }

    std::atomic<int> opened{0};
    std::atomic<int> discarded{0};
    std::function<void(Worker&)> acts;
};

class WorkerTest : public testing::Test {
protected:
    std::unique_ptr<Worker> make() {
        roce::EngineConfig config;
        config.max_queue_pairs = 4;
        config.max_regions = 4;
        return Worker::create(port, config, now).value();
    }

    Instant now{1'000};
    test::WirePort port{"10.0.0.1", 64};
};

TEST_F(WorkerTest, TenantsTakeTurnsInTheOrderInWhichTheyCame) {
    const auto worker = make();
    std::vector<int> order;
    Guest first(*worker);
    Guest second(*worker);
    first.acts = [&] { order.push_back(1); };
    second.acts = [&] { order.push_back(2); };
    EXPECT_FALSE(worker->turn(now));
    EXPECT_EQ(order, (std::vector<int>{1, 2}));
    EXPECT_EQ(first.last, now);
    EXPECT_EQ(first.sent, 1);
    second.busy = true;
    EXPECT_TRUE(worker->turn(now));
    Guest quiet(*worker, Worker::Calls::OnTurn);
    worker->turn(now);
    EXPECT_EQ(quiet.turns, 1);
    EXPECT_EQ(quiet.sent, 0);
}

TEST_F(WorkerTest, ATenantMayLeaveInAnyTurnAndOthersMayComeInIt) {
    const auto worker = make();
    Guest stays(*worker);
    auto leaves = std::make_unique<Guest>(*worker);
    auto other = std::make_unique<Guest>(*worker);
    std::unique_ptr<Guest> late;
    leaves->acts = [&] {
        other.reset();  // one that has not had its turn
        late = std::make_unique<Guest>(*worker);
        leaves->tenancy.leave();  // itself
    };
    worker->turn(now);
    EXPECT_EQ(late->turns, 1);
    EXPECT_EQ(leaves->turns, 1);
    EXPECT_EQ(leaves->sent, 0);
    worker->turn(now);
    EXPECT_EQ(leaves->turns, 1);
    EXPECT_EQ(stays.turns, 2);
    EXPECT_EQ(late->turns, 2);
}

TEST_F(WorkerTest, TheEarliestDeadlineIsItsOwn) {
    const auto worker = make();
    EXPECT_EQ(worker->next_deadline(), Instant::never());
    Guest one(*worker);
    Guest two(*worker);
    one.due = Instant{9'000};
    two.due = Instant{8'000};
    EXPECT_EQ(worker->next_deadline(), Instant{8'000});
    two.tenancy.leave();
    EXPECT_EQ(worker->next_deadline(), Instant{9'000});
    Note note;
    EXPECT_TRUE(worker->address().send(note).ok());
    EXPECT_EQ(worker->next_deadline(), Instant{});  // at once
    worker->turn(now);
    EXPECT_EQ(worker->next_deadline(), Instant{9'000});
}

TEST_F(WorkerTest, OneThatIsCalledWhenItIsDueIsCalledThenAndOnce) {
    const auto worker = make();
    Guest timed(*worker, Worker::Calls::WhenDue);
    Guest other(*worker, Worker::Calls::WhenDue);
    worker->turn(now);
    EXPECT_EQ(timed.turns, 0);
    timed.tenancy.wake_at(now + milliseconds(1));
    other.tenancy.wake_at(now + milliseconds(2));
    EXPECT_EQ(worker->next_deadline(), now + milliseconds(1));
    worker->turn(now + microseconds(999));
    EXPECT_EQ(timed.turns, 0);
    worker->turn(now + milliseconds(1));
    worker->turn(now + milliseconds(1));
    EXPECT_EQ(timed.turns, 1);
    EXPECT_EQ(worker->next_deadline(), now + milliseconds(2));
    other.acts = [&] { other.tenancy.wake_at(now + milliseconds(3)); };  // again, while it is called
    worker->turn(now + milliseconds(2));
    EXPECT_EQ(other.turns, 1);
    EXPECT_EQ(worker->next_deadline(), now + milliseconds(3));
    other.tenancy.leave();
    worker->turn(now + milliseconds(4));
    EXPECT_EQ(other.turns, 1);
    EXPECT_EQ(worker->next_deadline(), Instant::never());
    EXPECT_EQ(worker->now(), now + milliseconds(4));
}

TEST_F(WorkerTest, MailIsOpenedInTheNextTurnOnceAndInOrder) {
    const auto worker = make();
    std::vector<int> order;
    Note first;
    Note second;
    first.acts = [&](Worker& at) {
        EXPECT_EQ(&at, worker.get());
        order.push_back(1);
    };
    second.acts = [&](Worker&) { order.push_back(2); };
    EXPECT_TRUE(worker->address().send(first).ok());
    EXPECT_TRUE(worker->address().send(second).ok());
    EXPECT_TRUE(worker->turn(now));
    EXPECT_FALSE(worker->turn(now));
    EXPECT_EQ(order, (std::vector<int>{1, 2}));
    EXPECT_EQ(first.opened, 1);
    EXPECT_EQ(first.discarded, 0);
}

TEST_F(WorkerTest, MailToAWorkerThatEndedIsRefusedByNameAndWhatWasThereIsDiscarded) {
    auto worker = make();
    const Address address = worker->address();
    const std::string name = worker->name();
    EXPECT_EQ(name, "worker 0 of 10.0.0.1");
    Note waits;
    Note late;
    waits.acts = [](Worker&) { ADD_FAILURE() << "it has ended"; };
    EXPECT_TRUE(address.send(waits).ok());
    EXPECT_FALSE(address.ended());
    worker.reset();
    EXPECT_TRUE(address.ended());
    EXPECT_EQ(waits.discarded, 1);
    const Status refused = address.send(late);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().text().find(name), std::string::npos) << refused.error().text();
    EXPECT_EQ(late.discarded, 0);
}

TEST_F(WorkerTest, AThreadWithoutTheBatonDoesNothing) {
    const auto worker = make();
    Guest guest(*worker);
    EXPECT_EQ(worker->try_turn(now), std::optional(false));
    {
        const BatonHold hold(worker->baton());
        ASSERT_TRUE(hold);
        EXPECT_EQ(worker->try_turn(now), std::nullopt);
        EXPECT_FALSE(BatonHold(worker->baton()));
    }
    EXPECT_EQ(guest.turns, 1);
    EXPECT_EQ(worker->try_turn(now), std::optional(false));
    EXPECT_EQ(guest.turns, 2);
}

// Threads without a worker of their own: no two take a turn at a time, and all mail is handled.
TEST_F(WorkerTest, ThreadsShareAWorkerByItsBatonAndItsMail) {
    constexpr int kThreads = 3;
    constexpr int kLetters = 2'000;
    const auto worker = make();
    Guest guest(*worker);
    int inside = 0;  // not atomic: the baton orders the accesses
    guest.acts = [&] {
        EXPECT_EQ(++inside, 1);
        --inside;
    };
    std::vector<std::vector<Note>> notes;
    for (int i = 0; i < kThreads; ++i) {
        notes.emplace_back(kLetters);
    }
    std::vector<std::thread> threads;
    for (auto& own : notes) {
        threads.emplace_back([&] {
            for (Note& note : own) {
                EXPECT_TRUE(worker->address().send(note).ok());
                (void)worker->try_turn(now);
            }
        });
    }
    for (std::thread& each : threads) {
        each.join();
    }
    worker->turn(now);
    for (auto& own : notes) {
        EXPECT_TRUE(std::all_of(own.begin(), own.end(), [](const Note& note) { return note.opened == 1; }));
    }
}

// Mail wakes sleepers. The times are bounds against hanging, not measurements.
class SleepTest : public testing::Test {
protected:
    using Clock = std::chrono::steady_clock;
    static constexpr Duration kLong = seconds(20);

    static double seconds_since(Clock::time_point then) {
        return std::chrono::duration<double>(Clock::now() - then).count();
    }
    std::unique_ptr<Worker> make(const char* address) {
        port::UringPortConfig config;
        config.local = net::IpAddress::parse(address).value();
        port_ = port::UringPort::open(config).value();
        return Worker::create(*port_, {.max_queue_pairs = 4, .max_regions = 4}, now).value();
    }

    Instant now{1'000};
    std::unique_ptr<port::UringPort> port_;
};

TEST_F(SleepTest, MailWakesAWorkerThatSleepsOnItsPort) {
    const auto worker = make("127.71.211.1");
    const Address address = worker->address();
    Note note;
    const Clock::time_point begin = Clock::now();
    std::thread sender([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        EXPECT_TRUE(address.send(note).ok());
    });
    while (note.opened == 0 && seconds_since(begin) < 15) {
        worker->wait(now, now + kLong);
        worker->turn(now);
    }
    sender.join();
    EXPECT_EQ(note.opened, 1);
    EXPECT_LT(seconds_since(begin), 15);
}

TEST_F(SleepTest, MailThatIsThereIsNotSleptThrough) {
    const auto worker = make("127.71.211.2");
    const Address address = worker->address();
    Note note;
    EXPECT_TRUE(address.send(note).ok());
    const Clock::time_point begin = Clock::now();
    worker->wait(now, now + kLong);
    EXPECT_LT(seconds_since(begin), 15);
    worker->turn(now);
    EXPECT_EQ(note.opened, 1);
}

TEST_F(SleepTest, ItsDescriptorIsReadableForMailAndQuietOtherwise) {
    const auto worker = make("127.71.211.3");
    Guest guest(*worker);
    guest.due = now + milliseconds(7);
    const int fd = worker->descriptor().value();
    EXPECT_EQ(worker->descriptor().value(), fd);
    const auto readable = [fd](int timeout_ms) {
        pollfd one{fd, POLLIN, 0};
        return poll(&one, 1, timeout_ms) == 1;
    };
    EXPECT_EQ(worker->prepare_sleep(now), now + milliseconds(7));
    EXPECT_FALSE(readable(0));
    Note note;
    EXPECT_TRUE(worker->address().send(note).ok());
    EXPECT_TRUE(readable(10'000));
    worker->turn(now);
    EXPECT_EQ(note.opened, 1);
    EXPECT_EQ(worker->prepare_sleep(now), now + milliseconds(7));
    EXPECT_FALSE(readable(0));
    worker->turn(now);
}

TEST_F(SleepTest, OneThatPreparesToSleepTwiceIsQuietAfterItsTurn) {
    const auto worker = make("127.71.211.4");
    pollfd one{worker->descriptor().value(), POLLIN, 0};
    EXPECT_EQ(worker->prepare_sleep(now), Instant::never());
    Note note;
    EXPECT_TRUE(worker->address().send(note).ok());
    EXPECT_EQ(worker->prepare_sleep(now), now);
    EXPECT_EQ(poll(&one, 1, 10'000), 1);
    worker->turn(now);
    EXPECT_EQ(note.opened, 1);
    EXPECT_EQ(worker->prepare_sleep(now), Instant::never());
    EXPECT_EQ(poll(&one, 1, 0), 0);
    worker->turn(now);
}

TEST_F(WorkerTest, APollOnlyPortHasNoDescriptorAndSaysWhatHasOne) {
    const auto worker = make();
    const Result<int> none = worker->descriptor();
    ASSERT_FALSE(none.ok());
    EXPECT_NE(none.error().text().find("worker 0 of 10.0.0.1"), std::string::npos);
    EXPECT_NE(none.error().text().find("uring"), std::string::npos);
    worker->wait(now, now + seconds(20));  // a nap at most
    worker->turn(now);
}

}  // namespace
}  // namespace cairn::worker
