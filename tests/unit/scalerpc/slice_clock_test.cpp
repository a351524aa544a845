// Clocks of slices: slots, and a follower's estimate of another clock over paths of equal or different delays in both
// directions.
#include "rpc/scalerpc/slice_clock.hpp"

#include <gtest/gtest.h>

#include <random>

namespace cairn::scalerpc {
namespace {

constexpr SliceClockConfig kConfig{microseconds(100), 3, milliseconds(100)};
constexpr Instant kStart{5'000'000};

TEST(ScalerpcSliceClock, SlotsFollowOneAnother) {
    const SliceClock clock(kConfig, kStart);
    for (std::int64_t i = 0; i < 10; ++i) {
        for (const std::int64_t within : {0LL, 1LL, 99'999LL}) {
            const SliceClock::Slot slot = clock.slot_at(kStart + Duration{i * 100'000 + within});
            EXPECT_EQ(slot.number, static_cast<std::uint64_t>(i));
            EXPECT_EQ(slot.ends, kStart + Duration{(i + 1) * 100'000});
            EXPECT_EQ(clock.cohort_of(slot), static_cast<std::uint32_t>(i % 3));
        }
    }
}

TEST(ScalerpcSliceClock, TimesBeforeTheNextSwitchHaveSlotsToo) {
    SliceClock clock(kConfig, kStart);
    ASSERT_EQ(clock.on_answer(kStart, kStart, {{}, microseconds(40), 7}), SliceClock::Verdict::Taken);
    EXPECT_EQ(clock.slot_at(kStart + microseconds(40)).number, 7U);
    EXPECT_EQ(clock.slot_at(kStart + nanoseconds(39'999)).number, 6U);
    EXPECT_EQ(clock.slot_at(kStart + nanoseconds(39'999)).ends, kStart + microseconds(40));
    EXPECT_EQ(clock.slot_at(kStart - microseconds(60)).number, 6U);
    EXPECT_EQ(clock.slot_at(kStart - nanoseconds(60'001)).number, 5U);
}

// Di = D - (Ti4 - Ti1 - DeltaTi) / 2
TEST(ScalerpcSliceClock, TheFormulaIsThatOfThePaper) {
    SliceClock clock(kConfig, kStart);
    const Instant asked = kStart;
    const Instant got = kStart + microseconds(30);
    ASSERT_EQ(clock.on_answer(asked, got, {microseconds(10), microseconds(100), 1}), SliceClock::Verdict::Taken);
    EXPECT_EQ(clock.slot_at(got).ends, got + microseconds(100 - (30 - 10) / 2));
    EXPECT_EQ(clock.slot_at(got).number, 0U);
}

TEST(ScalerpcSliceClock, AnAnswerIsReadAsItWasWritten) {
    const TimeAnswer answer{microseconds(3), microseconds(77), 0x123456789abcU};
    const RawTimeAnswer raw = answer.raw();
    const std::span<const std::uint8_t> bytes{reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)};
    const auto read = TimeAnswer::parse(bytes);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->held, answer.held);
    EXPECT_EQ(read->rest, answer.rest);
    EXPECT_EQ(read->slot, answer.slot);
    EXPECT_FALSE(TimeAnswer::parse(bytes.first(bytes.size() - 1)).has_value());
}

TEST(ScalerpcSliceClock, NonsenseChangesNothing) {
    SliceClock clock(kConfig, kStart);
    const SliceClock::Slot before = clock.slot_at(kStart);
    const Instant got = kStart + microseconds(30);
    for (const TimeAnswer& bad : {TimeAnswer{microseconds(31), microseconds(50), 4}, TimeAnswer{{-1}, {}, 4},
                                  TimeAnswer{{}, {-1}, 4}, TimeAnswer{{}, microseconds(101), 4}}) {
        EXPECT_EQ(clock.on_answer(kStart, got, bad), SliceClock::Verdict::Nonsense);
    }
    EXPECT_EQ(clock.on_answer(got, kStart, {{}, {}, 4}), SliceClock::Verdict::Nonsense);
    EXPECT_EQ(clock.slot_at(kStart).number, before.number);
    EXPECT_EQ(clock.slot_at(kStart).ends, before.ends);
}

TEST(ScalerpcSliceClock, AnAnswerThatWasHeldUpIsNotTaken) {
    SliceClock clock(kConfig, kStart);
    ASSERT_EQ(clock.on_answer(kStart, kStart + microseconds(10), {{}, microseconds(50), 1}),
              SliceClock::Verdict::Taken);
    const Instant ends = clock.slot_at(kStart + microseconds(10)).ends;
    EXPECT_EQ(clock.on_answer(kStart, kStart + microseconds(60), {{}, microseconds(50), 1}), SliceClock::Verdict::Slow);
    EXPECT_EQ(clock.slot_at(kStart + microseconds(10)).ends, ends);
}

TEST(ScalerpcSliceClock, AWayThatHasGrownForGoodIsTakenInTheEnd) {
    SliceClock clock(kConfig, kStart);
    (void)clock.on_answer(kStart, kStart + microseconds(10), {{}, microseconds(50), 1});
    int asked = 0;
    while (clock.on_answer(kStart, kStart + microseconds(80), {{}, microseconds(50), 1}) !=
           SliceClock::Verdict::Taken) {
        ASSERT_LT(++asked, 10);
    }
    EXPECT_GT(asked, 1);
}

// Two clocks with different times and rates, compared once a period, over paths of any delay. The error is at most half
// of the difference of the delays in both directions, plus the drift within a period.
TEST(ScalerpcSliceClock, FollowersAreApartByHalfOfTheAsymmetryAtMost) {
    std::mt19937_64 random(11);
    const auto below = [&random](std::int64_t most) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
    };
    for (int run = 0; run < 200; ++run) {
        const Duration ahead{below(1'000'000'000) - 500'000'000};
        const std::int64_t ppm = below(200) - 100;
        const auto theirs = [ahead, ppm](Instant at) { return at + ahead + Duration{at.ns / 1'000'000 * ppm}; };
        const Duration there{below(20'000)};
        const Duration back{below(20'000)};
        const Duration held{below(50'000)};
        SliceClock time_server(kConfig, Instant{1'000'000});
        SliceClock follower(kConfig, theirs(Instant{1'000'000} + Duration{below(100'000)}));
        for (Instant now{10'000'000}; now < Instant{1'000'000'000}; now = now + kConfig.period) {
            const Instant came = now + there;
            const Instant left = came + held;
            const Instant got = left + back;
            ASSERT_EQ(follower.on_answer(theirs(now), theirs(got), time_server.answer(came, left)),
                      SliceClock::Verdict::Taken);
            for (const Duration later : {Duration{}, kConfig.period - microseconds(200)}) {
                const Instant ends = time_server.slot_at(got + later).ends;
                const SliceClock::Slot same = follower.slot_at(theirs(ends) - microseconds(50));
                ASSERT_EQ(same.number, time_server.slot_at(got + later).number);
                const std::int64_t apart = (same.ends - theirs(ends)).ns;
                const std::int64_t bound = (there - back).ns / 2;
                const std::int64_t drift = (later.ns + 200'000) / 1'000'000 * 100 + 200;
                ASSERT_LE(apart, std::max<std::int64_t>(bound, -bound) + drift);
                ASSERT_GE(apart, -std::max<std::int64_t>(bound, -bound) - drift);
            }
        }
    }
}

}  // namespace
}  // namespace cairn::scalerpc
