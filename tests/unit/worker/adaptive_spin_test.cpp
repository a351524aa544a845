// How long an idle worker spins, at exact virtual times.
#include "lib/worker/adaptive_spin.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "lib/worker/eager_spin.hpp"

namespace cairn::worker {
namespace {

using Advice = AdaptiveSpin::Advice;

class AdaptiveSpinTest : public testing::Test {
protected:
    void work() { spin.on_work(now); }
    Advice idle() {
        return spin.on_idle(now, [this] {
            ++asked;
            return preemptions;
        });
    }
    // Takes idle turns every microsecond. Returns the last advice.
    Advice idle_for(Duration span) {
        Advice advice = Advice::Spin;
        for (const Instant end = now + span; now < end;) {
            now = now + microseconds(1);
            advice = idle();
        }
        return advice;
    }
    // Brings work, and then nothing for longer than a spin lasts.
    void fail_a_spin() {
        work();
        idle_for(AdaptiveSpin::kMost);
    }
    // Brings work this long after the last, until that is usual.
    void get_used_to(Duration wait) {
        for (int i = 0; i < 50; ++i) {
            work();
            now = now + wait;
        }
    }
    // Returns whether it spins after work that comes now.
    bool spins_after_work() {
        work();
        return idle_for(microseconds(10)) == Advice::Spin;
    }

    AdaptiveSpin spin;
    Instant now{};
    std::uint64_t preemptions = 7;
    int asked = 0;
};

TEST_F(AdaptiveSpinTest, SpinsWhileWorkComesSoon) {
    for (int i = 0; i < 1000; ++i) {
        work();
        EXPECT_EQ(idle_for(microseconds(40)), Advice::Spin);
    }
    EXPECT_EQ(asked, 0);
}

TEST_F(AdaptiveSpinTest, GivesTheCpuAwayWhenASpinFindsNothingAndSleepsWhenNothingComes) {
    get_used_to(microseconds(25));
    work();
    EXPECT_EQ(idle_for(microseconds(45)), Advice::Spin);
    EXPECT_EQ(idle_for(microseconds(5)), Advice::Yield);
    EXPECT_EQ(idle_for(microseconds(949)), Advice::Yield);
    EXPECT_EQ(idle_for(microseconds(1)), Advice::Sleep);
    EXPECT_EQ(idle_for(milliseconds(100)), Advice::Sleep);
}

TEST_F(AdaptiveSpinTest, ASpinIsTwiceAsLongAsWorkUsuallyTakesWithinLimits) {
    for (const auto& [wait, expected] :
         {std::pair{microseconds(2), AdaptiveSpin::kLeast}, std::pair{microseconds(40), microseconds(80)},
          std::pair{milliseconds(9), AdaptiveSpin::kMost}}) {
        get_used_to(wait);
        EXPECT_NEAR(static_cast<double>(spin.spin().ns), static_cast<double>(expected.ns), 3e3);
    }
}

TEST_F(AdaptiveSpinTest, OneFailedSpinIsForgivenTwoInARowAreNot) {
    for (int i = 0; i < 10; ++i) {
        fail_a_spin();
        EXPECT_TRUE(spins_after_work()) << i;
    }
    fail_a_spin();
    fail_a_spin();
    EXPECT_FALSE(spins_after_work());
}

TEST_F(AdaptiveSpinTest, TheSpinAfterAFailedOneOutlastsAPeerThatWentToSleep) {
    get_used_to(microseconds(2));
    work();
    EXPECT_EQ(idle_for(AdaptiveSpin::kLeast), Advice::Yield);
    work();
    EXPECT_EQ(idle_for(microseconds(100)), Advice::Spin);
    work();
    EXPECT_EQ(idle_for(microseconds(15)), Advice::Spin);
}

TEST_F(AdaptiveSpinTest, TriesOneSpinAgainEveryFewMilliseconds) {
    fail_a_spin();
    fail_a_spin();
    const Instant stopped = now;
    int spins = 0;
    while (now - stopped < milliseconds(50)) {
        work();
        spins += idle_for(microseconds(1)) == Advice::Spin ? 1 : 0;
        EXPECT_EQ(idle_for(microseconds(300)), Advice::Yield);
    }
    EXPECT_GE(spins, 8);  // each fails
    EXPECT_LE(spins, 9);
}

// Two sleepers wake each other, and each needs time to wake up. One spin longer than that gets them out.
TEST_F(AdaptiveSpinTest, AProbeOutlastsAPeerThatHasToWakeUp) {
    fail_a_spin();
    fail_a_spin();
    int answered = 0;
    for (const Instant stopped = now; now < stopped + milliseconds(50); ++answered) {
        const bool spun = spins_after_work();
        const Instant sent = now;
        while (now - sent < (spun ? microseconds(55) : microseconds(110))) {  // its waking up, and ours
            now = now + microseconds(1);
            static_cast<void>(idle());
        }
    }
    EXPECT_TRUE(spins_after_work());
}

TEST_F(AdaptiveSpinTest, AProbeThatFindsWorkMakesItSpinAsBefore) {
    fail_a_spin();
    fail_a_spin();
    now = now + AdaptiveSpin::kProbe;
    EXPECT_TRUE(spins_after_work());
    EXPECT_TRUE(spins_after_work());
    fail_a_spin();
    EXPECT_TRUE(spins_after_work());
}

TEST_F(AdaptiveSpinTest, StopsWhenItIsPreemptedWhileIdle) {
    EXPECT_TRUE(spins_after_work());
    now = now + AdaptiveSpin::kSuspect;
    EXPECT_EQ(idle(), Advice::Yield);
    EXPECT_FALSE(spins_after_work());
    now = now + AdaptiveSpin::kProbe;
    EXPECT_TRUE(spins_after_work());
}

TEST_F(AdaptiveSpinTest, StopsWhenItIsPreemptedAndFindsWorkOnItsReturn) {
    EXPECT_TRUE(spins_after_work());
    now = now + milliseconds(4);
    EXPECT_FALSE(spins_after_work());
}

TEST_F(AdaptiveSpinTest, ATurnThatTookLongWithoutAPreemptionIsForgiven) {
    EXPECT_TRUE(spins_after_work());
    now = now + milliseconds(4);
    EXPECT_FALSE(spins_after_work());  // nothing to compare with yet
    now = now + AdaptiveSpin::kProbe;
    EXPECT_TRUE(spins_after_work());
    for (int i = 0; i < 10; ++i) {
        now = now + milliseconds(4);  // a long handler, or a pause by the hypervisor
        EXPECT_TRUE(spins_after_work());
    }
}

TEST_F(AdaptiveSpinTest, SleepIsNoPreemption) {
    work();
    EXPECT_EQ(idle_for(milliseconds(2)), Advice::Sleep);
    for (int i = 0; i < 10; ++i) {
        now = now + milliseconds(1);
        EXPECT_EQ(idle(), Advice::Sleep);
    }
    now = now + milliseconds(1);
    EXPECT_TRUE(spins_after_work());
    EXPECT_EQ(asked, 0);
}

TEST_F(AdaptiveSpinTest, SleepsAtOnceAfterWorkOnlyOnceSpinningEnded) {
    work();
    EXPECT_FALSE(spin.may_sleep_at_once());
    fail_a_spin();
    fail_a_spin();
    work();
    EXPECT_TRUE(spin.may_sleep_at_once());
    now = now + milliseconds(1);  // it slept: this was no long turn
    work();
    idle();
    EXPECT_EQ(asked, 0);
}

TEST(EagerSpin, PausesOnceWorkIsNotNearAnyMore) {
    EagerSpin spin;
    for (int times = 0; times < 2; ++times) {
        for (std::uint32_t turn = 1; turn < EagerSpin::kEagerTurns; ++turn) {
            EXPECT_FALSE(spin.on_idle()) << turn;
        }
        EXPECT_TRUE(spin.on_idle());
        EXPECT_TRUE(spin.on_idle());
        spin.on_work();
    }
}

}  // namespace
}  // namespace cairn::worker
