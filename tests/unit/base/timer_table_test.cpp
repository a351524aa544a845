#include "lib/base/timer_table.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

enum class Timer : std::uint8_t { One, Two, Count };

TEST(TimerTable, NothingIsDueUntilArmed) {
    const TimerTable<Timer> timers;
    EXPECT_FALSE(timers.is_armed(Timer::One));
    EXPECT_FALSE(timers.is_due(Timer::Two, Instant{1'000'000'000}));
    EXPECT_EQ(timers.next(), Instant::never());
}

TEST(TimerTable, TheEarliestIsNextAndEachIsDueAtItsTime) {
    TimerTable<Timer> timers;
    timers.arm(Timer::One, Instant{20});
    timers.arm(Timer::Two, Instant{10});
    EXPECT_EQ(timers.next(), Instant{10});
    EXPECT_FALSE(timers.is_due(Timer::Two, Instant{9}));
    EXPECT_TRUE(timers.is_due(Timer::Two, Instant{10}));
    EXPECT_FALSE(timers.is_due(Timer::One, Instant{10}));
    timers.stop(Timer::Two);
    EXPECT_EQ(timers.next(), Instant{20});
    timers.arm(Timer::One, Instant{5});  // armed again: the old time is forgotten
    EXPECT_EQ(timers.due(Timer::One), Instant{5});
    timers.stop_all();
    EXPECT_EQ(timers.next(), Instant::never());
}

}  // namespace
}  // namespace cairn
