// The timing wheel at exact virtual times, and random histories against a sorted map.
#include "lib/roce/pace/timing_wheel.hpp"

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "lib/sim/random.hpp"

namespace cairn::roce {
namespace {

constexpr Instant kFirstTick{1'000'000};  // a slot begins here

Instant at(std::int64_t ns_after_start) {
    return kFirstTick + nanoseconds(ns_after_start);
}

class TimingWheelTest : public testing::Test {
protected:
    // Returns the items handed out at that time, in order.
    std::vector<int> take(Instant now) {
        std::vector<int> taken;
        const std::size_t count = wheel.advance(now, [&](int entry) { taken.push_back(entry); });
        EXPECT_EQ(count, taken.size());
        wheel.check_invariants();
        return taken;
    }
    TimingWheel<int> wheel{microseconds(100), 8, kFirstTick};  // 256 slots, 128 us
};

using Ints = std::vector<int>;

TEST_F(TimingWheelTest, AnEntryIsDueInTheFirstSlotThatDoesNotBeginBeforeItsTime) {
    struct Row {
        std::int64_t when_ns;
        std::int64_t due_ns;
    };
    for (const Row& row : std::vector<Row>{{1, 500}, {499, 500}, {500, 500}, {501, 1000}, {99'999, 100'000}}) {
        TimingWheel<int> fresh(microseconds(100), 8, kFirstTick);
        ASSERT_TRUE(fresh.insert(7, at(row.when_ns)));
        EXPECT_EQ(fresh.next_due(), at(row.due_ns));
        EXPECT_EQ(fresh.advance(at(row.due_ns - 1), [](int) { FAIL() << "early"; }), 0U);
        EXPECT_EQ(fresh.next_due(), at(row.due_ns));
        EXPECT_EQ(fresh.advance(at(row.due_ns), [](int entry) { EXPECT_EQ(entry, 7); }), 1U);
        EXPECT_EQ(fresh.next_due(), Instant::never());
    }
}

TEST_F(TimingWheelTest, OrderIsBySlotAndWithinASlotByAge) {
    const std::vector<std::pair<int, std::int64_t>> rows = {{1, 2000}, {2, 1700}, {3, 600}, {4, 1600}, {5, 999}};
    for (const auto& [entry, when_ns] : rows) {
        ASSERT_TRUE(wheel.insert(entry, at(when_ns)));
    }
    EXPECT_EQ(wheel.size(), 5U);
    EXPECT_EQ(take(at(999)), Ints());
    EXPECT_EQ(take(at(1000)), (Ints{3, 5}));
    EXPECT_EQ(take(at(2000)), (Ints{1, 2, 4}));
    EXPECT_EQ(wheel.size(), 0U);
}

TEST_F(TimingWheelTest, ATimeInThePastGoesToTheCurrentSlot) {
    EXPECT_EQ(take(at(10'250)), Ints());
    ASSERT_TRUE(wheel.insert(1, at(10'700)));
    ASSERT_TRUE(wheel.insert(2, at(-5'000)));
    ASSERT_TRUE(wheel.insert(3, Instant{std::numeric_limits<std::int64_t>::min()}));
    EXPECT_EQ(wheel.next_due(), at(10'000));
    EXPECT_EQ(take(at(10'250)), (Ints{2, 3}));
    EXPECT_EQ(take(at(11'000)), Ints{1});
    EXPECT_EQ(wheel.clamped(), 0U);
}

TEST_F(TimingWheelTest, ATimeBeyondTheHorizonGoesToTheLastSlotAndIsCounted) {
    EXPECT_EQ(wheel.horizon(), microseconds(127));
    EXPECT_EQ(take(at(499)), Ints());
    ASSERT_TRUE(wheel.insert(1, at(499) + wheel.horizon()));
    EXPECT_EQ(wheel.clamped(), 0U);
    ASSERT_TRUE(wheel.insert(2, at(127'501)));
    ASSERT_TRUE(wheel.insert(3, Instant::never()));
    EXPECT_EQ(wheel.clamped(), 2U);
    EXPECT_EQ(wheel.next_due(), at(127'500));
    EXPECT_EQ(take(at(127'499)), Ints());
    EXPECT_EQ(take(at(127'500)), (Ints{1, 2, 3}));
}

TEST_F(TimingWheelTest, AfterALongPauseEverythingComesInOrder) {
    for (int entry = 7; entry >= 0; --entry) {
        ASSERT_TRUE(wheel.insert(entry, at(std::int64_t{15'000} * entry)));
    }
    EXPECT_EQ(take(kFirstTick + seconds(3600)), (Ints{0, 1, 2, 3, 4, 5, 6, 7}));
    // The wheel then goes on from there, around its whole circle.
    for (std::int64_t us = 0; us < 300; ++us) {
        const Instant now = kFirstTick + seconds(3600) + microseconds(us);
        ASSERT_TRUE(wheel.insert(static_cast<int>(us), now + nanoseconds(400)));
        EXPECT_EQ(take(now + nanoseconds(500)), Ints{static_cast<int>(us)});
    }
}

TEST_F(TimingWheelTest, TimeThatGoesBackCountsAsTheLatest) {
    EXPECT_EQ(take(at(50'000)), Ints());
    ASSERT_TRUE(wheel.insert(1, at(50'600)));
    ASSERT_TRUE(wheel.insert(2, at(20'000)));
    EXPECT_EQ(take(at(0)), Ints{2});
    EXPECT_EQ(take(Instant{std::numeric_limits<std::int64_t>::min()}), Ints());
    EXPECT_EQ(take(at(50'999)), Ints());
    EXPECT_EQ(take(at(51'000)), Ints{1});
}

TEST_F(TimingWheelTest, AFullWheelIsAValue) {
    for (int entry = 0; entry < 8; ++entry) {
        ASSERT_TRUE(wheel.insert(entry, at(entry)));
    }
    EXPECT_FALSE(wheel.insert(8, at(0)));
    EXPECT_EQ(wheel.size(), wheel.capacity());
    EXPECT_EQ(take(at(0)), Ints{0});
    EXPECT_TRUE(wheel.insert(8, at(0)));
    EXPECT_FALSE(wheel.insert(9, at(0)));
    EXPECT_EQ(take(at(500)), (Ints{8, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(TimingWheelTest, ACancelledEntryIsNotHandedOutAndItsHandleIsDead) {
    const TimingWheelHandle first = wheel.insert(1, at(5'000));
    const TimingWheelHandle second = wheel.insert(2, at(5'000));
    const TimingWheelHandle third = wheel.insert(3, at(5'000));
    EXPECT_TRUE(wheel.cancel(second));
    EXPECT_FALSE(wheel.cancel(second));
    EXPECT_FALSE(wheel.cancel(TimingWheelHandle{}));
    const TimingWheelHandle reuse = wheel.insert(4, at(6'000));
    EXPECT_EQ(reuse.node, second.node);
    EXPECT_FALSE(wheel.contains(second));
    EXPECT_FALSE(wheel.cancel(second));
    EXPECT_EQ(take(at(5'000)), (Ints{1, 3}));
    EXPECT_FALSE(wheel.cancel(first));
    EXPECT_FALSE(wheel.cancel(third));
    EXPECT_TRUE(wheel.cancel(reuse));
    EXPECT_EQ(wheel.next_due(), Instant::never());
    EXPECT_EQ(take(at(10'000)), Ints());
}

TEST_F(TimingWheelTest, WhatTheSinkInsertsWaitsForTheNextCall) {
    ASSERT_TRUE(wheel.insert(1, at(100)));
    ASSERT_TRUE(wheel.insert(2, at(100)));
    EXPECT_EQ(wheel.advance(at(70'000), [&](int entry) { EXPECT_TRUE(wheel.insert(entry + 10, at(0))); }), 2U);
    EXPECT_EQ(wheel.next_due(), at(70'000));
    EXPECT_EQ(take(at(70'000)), (Ints{11, 12}));
}

TEST_F(TimingWheelTest, TheSinkMayCancelWhatIsDueBehindIt) {
    ASSERT_TRUE(wheel.insert(1, at(100)));
    const TimingWheelHandle second = wheel.insert(2, at(100));
    const TimingWheelHandle third = wheel.insert(3, at(3'000));
    ASSERT_TRUE(wheel.insert(4, at(3'000)));
    Ints taken;
    wheel.advance(at(3'000), [&](int entry) {
        taken.push_back(entry);
        EXPECT_EQ(wheel.next_due(), entry == 1 ? at(3'000) : Instant::never());
        EXPECT_EQ(wheel.cancel(second), entry == 1);
        EXPECT_EQ(wheel.cancel(third), entry == 1);
        EXPECT_EQ(wheel.size(), entry == 1 ? 1U : 0U);
        if (entry == 1) {
            wheel.check_invariants();
        }
    });
    EXPECT_EQ(taken, (Ints{1, 4}));
}

TEST(TimingWheel, EveryHorizonHoldsItsTimesAtEveryPhaseOfASlot) {
    for (const std::int64_t horizon_ns : {1LL, 500LL, 31'000LL, 31'001LL, 32'000LL, 2'184'500LL, 1'000'000'000LL}) {
        for (const std::int64_t phase_ns : {0, 1, 250, 499}) {
            const Instant now = at(phase_ns);
            TimingWheel<int> wheel(nanoseconds(horizon_ns), 1, now);
            EXPECT_GE(wheel.horizon(), nanoseconds(horizon_ns));
            ASSERT_TRUE(wheel.insert(1, now + wheel.horizon()));
            EXPECT_EQ(wheel.clamped(), 0U);
            EXPECT_GE(wheel.next_due(), now + wheel.horizon());
            EXPECT_LT(wheel.next_due(), now + wheel.horizon() + kSlot);
        }
    }
}

TEST(TimingWheel, AnyTimeAtAllIsTaken) {
    constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
    for (const Instant now : {Instant{kLeast}, Instant{-1}, Instant{0}, Instant{499}, Instant::never()}) {
        TimingWheel<int> wheel(milliseconds(1), 4, now);
        ASSERT_TRUE(wheel.insert(1, Instant{kLeast}));
        ASSERT_TRUE(wheel.insert(2, Instant::never()));
        EXPECT_LT(wheel.next_due(), Instant::never());
        EXPECT_EQ(wheel.advance(Instant::never(), [](int) {}), now == Instant::never() ? 1U : 2U);
        wheel.check_invariants();
    }
}

// A sorted map as the model: equal slots keep the order of insertion.
class Model {
public:
    Model(sim::Random& random, std::uint32_t capacity, Duration horizon)
        : random_(random), wheel_(horizon, capacity, now_), capacity_(capacity) {}

    void step() {
        const std::uint64_t dice = random_.below(100);
        if (dice < 60) {
            insert();
        } else if (dice < 75) {
            cancel();
        } else {
            advance();
        }
        check();
    }

private:
    static std::int64_t slot_before(Instant when) { return (when.ns + 500'000'000'000) / 500 - 1'000'000'000; }

    void insert() {
        const Duration reach = wheel_.horizon();
        Instant when = now_ + random_.between(Duration{} - reach / 8, reach);
        if (random_.chance(50'000)) {
            when = now_ + reach + random_.between(Duration{}, reach * 3);
        }
        const std::int64_t wanted = std::max(slot_before(when + nanoseconds(499)), present_);
        const std::int64_t last = present_ + reach.ns / 500 + 1;
        const TimingWheelHandle handle = wheel_.insert(serial_, when);
        ASSERT_EQ(static_cast<bool>(handle), model_.size() < capacity_);
        if (handle) {
            clamped_ += wanted > last ? 1U : 0U;
            model_.emplace(std::min(wanted, last), std::pair(serial_, handle));
            ++serial_;
        }
    }
    void cancel() {
        if (model_.empty() || random_.chance(100'000)) {
            EXPECT_FALSE(wheel_.cancel(dead_));
            return;
        }
        const auto victim = std::next(model_.begin(), static_cast<std::ptrdiff_t>(random_.below(model_.size())));
        EXPECT_TRUE(wheel_.cancel(victim->second.second));
        dead_ = victim->second.second;
        model_.erase(victim);
        EXPECT_FALSE(wheel_.contains(dead_));
    }
    void advance() {
        const Duration reach = wheel_.horizon();
        now_ = now_ + random_.between(Duration{}, random_.chance(300'000) ? reach / 4 : microseconds(2));
        if (random_.chance(20'000)) {
            now_ = now_ + reach * static_cast<std::int64_t>(random_.between(1, 50));
        } else if (random_.chance(50'000)) {
            now_ = now_ - random_.between(Duration{}, reach / 2);
        }
        present_ = std::max(present_, slot_before(now_));
        wheel_.advance(now_, [&](std::uint32_t serial) {
            ASSERT_FALSE(model_.empty());
            ASSERT_LE(model_.begin()->first, present_);
            ASSERT_EQ(serial, model_.begin()->second.first);
            dead_ = model_.begin()->second.second;
            model_.erase(model_.begin());
        });
        EXPECT_TRUE(model_.empty() || model_.begin()->first > present_);
    }
    void check() {
        ASSERT_EQ(wheel_.size(), model_.size());
        ASSERT_EQ(wheel_.clamped(), clamped_);
        ASSERT_EQ(wheel_.next_due(), model_.empty() ? Instant::never() : Instant{model_.begin()->first * 500});
        wheel_.check_invariants();
    }

    sim::Random& random_;
    Instant now_{static_cast<std::int64_t>(random_.below(10'000'000))};
    std::int64_t present_ = slot_before(now_);
    TimingWheel<std::uint32_t> wheel_;
    std::multimap<std::int64_t, std::pair<std::uint32_t, TimingWheelHandle>> model_;  // by slot
    TimingWheelHandle dead_{};                                                        // the last used handle
    std::size_t capacity_;
    std::uint64_t clamped_ = 0;
    std::uint32_t serial_ = 0;
};

TEST(TimingWheel, RandomHistoriesAgreeWithASortedMap) {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        SCOPED_TRACE(seed);
        sim::Random random(seed);
        const auto capacity = static_cast<std::uint32_t>(random.between(1, 200));
        Model model(random, capacity, microseconds(static_cast<std::int64_t>(random.between(1, 400))));
        for (int step = 0; step < 600; ++step) {
            model.step();
            if (testing::Test::HasFailure()) {
                return;
            }
        }
    }
}

}  // namespace
}  // namespace cairn::roce
