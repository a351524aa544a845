// SteadyTime: for any behaviour of its counter, time goes on and neither back nor far at once.
#include "lib/base/steady_time.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

constexpr Instant kStart{5'000'000'000};

TEST(SteadyTime, FollowsAnEvenCounterExactly) {
    SteadyTime time;
    EXPECT_EQ(time.on_reading(kStart), kStart);
    EXPECT_EQ(time.on_reading(kStart), kStart);
    EXPECT_EQ(time.on_reading(kStart + nanoseconds(1)), kStart + nanoseconds(1));
    EXPECT_EQ(time.on_reading(kStart + nanoseconds(1) + SteadyTime::kStepMost),
              kStart + nanoseconds(1) + SteadyTime::kStepMost);
    EXPECT_EQ(time.went_back() + time.leapt(), 0U);
}

TEST(SteadyTime, StandsStillWhenTheCounterGoesBackAndThenGoesOnWithIt) {
    SteadyTime time;
    EXPECT_EQ(time.on_reading(kStart), kStart);
    EXPECT_EQ(time.on_reading(kStart - seconds(3)), kStart);
    EXPECT_EQ(time.on_reading(kStart - seconds(3) + microseconds(7)), kStart + microseconds(7));
    EXPECT_EQ(time.on_reading(kStart - seconds(3) + microseconds(6)), kStart + microseconds(7));
    EXPECT_EQ(time.went_back(), 2U);
    EXPECT_EQ(time.leapt(), 0U);
}

TEST(SteadyTime, CountsALeapAsTheLongestStep) {
    SteadyTime time;
    EXPECT_EQ(time.on_reading(kStart), kStart);
    const Instant far = kStart + SteadyTime::kStepMost + nanoseconds(1);
    EXPECT_EQ(time.on_reading(far), kStart + SteadyTime::kStepMost);
    EXPECT_EQ(time.leapt(), 1U);
    EXPECT_EQ(time.on_reading(far + microseconds(2)), kStart + SteadyTime::kStepMost + microseconds(2));
    EXPECT_EQ(time.leapt(), 1U);
}

TEST(SteadyTime, NoReadingIsTooFarAway) {
    SteadyTime time;
    EXPECT_EQ(time.on_reading({std::numeric_limits<std::int64_t>::min()}), Instant{});  // before the epoch
    EXPECT_EQ(time.on_reading(Instant::never()), Instant{} + SteadyTime::kStepMost);
    EXPECT_EQ(time.on_reading({std::numeric_limits<std::int64_t>::min()}), Instant{} + SteadyTime::kStepMost);
    EXPECT_EQ(time.on_reading(Instant::never()), Instant{} + SteadyTime::kStepMost * 2);
    EXPECT_EQ(time.leapt(), 2U);
    EXPECT_EQ(time.went_back(), 2U);
}

}  // namespace
}  // namespace cairn
