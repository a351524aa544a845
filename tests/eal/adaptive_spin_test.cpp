// How long an idle worker spins, at exact virtual times.
#include "pmd_glue/adaptive_spin.hpp"

#include <gtest/gtest.h>

namespace cairn::pmd {
namespace {

using Advice = AdaptiveSpin::Advice;

// Idle turns every microsecond; the last advice.
Advice idle_for(AdaptiveSpin& spin, Instant& now, Duration span) {
    Advice advice = Advice::Spin;
    for (const Instant end = now + span; now < end;) {
        now = now + microseconds(1);
        advice = spin.on_idle(now);
    }
    return advice;
}

TEST(AdaptiveSpin, SpinsWhileWorkComesSoon) {
    AdaptiveSpin spin;
    Instant now{};
    for (int i = 0; i < 100; ++i) {
        spin.on_work(now);
        EXPECT_EQ(idle_for(spin, now, microseconds(40)), Advice::Spin);
    }
}

TEST(AdaptiveSpin, GivesTheCpuAwayAfterAFailedSpinAndSleepsWhenNothingComes) {
    AdaptiveSpin spin;
    Instant now{};
    spin.on_work(now);
    EXPECT_EQ(idle_for(spin, now, microseconds(60)), Advice::Yield);
    EXPECT_EQ(idle_for(spin, now, milliseconds(2)), Advice::Sleep);
}

TEST(AdaptiveSpin, DoesNotSpinAgainRightAfterAFailureButTriesLater) {
    AdaptiveSpin spin;
    Instant now{};
    spin.on_work(now);
    idle_for(spin, now, microseconds(60));
    spin.on_work(now);
    EXPECT_EQ(idle_for(spin, now, microseconds(10)), Advice::Yield);
    now = now + AdaptiveSpin::kProbe;
    spin.on_work(now);
    EXPECT_EQ(idle_for(spin, now, microseconds(10)), Advice::Spin);
}

TEST(AdaptiveSpin, StopsSpinningWhenItIsPreempted) {
    AdaptiveSpin spin;
    Instant now{};
    spin.on_work(now);
    idle_for(spin, now, microseconds(5));
    now = now + AdaptiveSpin::kPreempted;
    EXPECT_EQ(spin.on_idle(now), Advice::Yield);
}

}  // namespace
}  // namespace cairn::pmd
