// Timely at exact virtual times, and its effect on flows over one queue.
#include "lib/roce/pace/timely.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/unit/roce/bottleneck.hpp"

namespace cairn::roce {
namespace {

constexpr double kHundredGbit = 12.5e9;  // 100 Gbit/s
constexpr Instant kBegin{1'000'000'000};

AckSample rtt_us(std::int64_t us) {
    return {microseconds(us), 1024};
}

class TimelyTest : public testing::Test {
protected:
    // Reports an acknowledgement, `later` after the one before: 2 us give a change its whole weight, 0 none.
    void ack(Duration rtt, Duration later) {
        now = now + later;
        timely.on_ack({rtt, 1024}, now);
    }
    // Reports the same RTT until the mean of the differences is 0. No time passes, so the rate does not change.
    void settle(Duration rtt) {
        for (int i = 0; i < 200; ++i) {
            ack(rtt, {});
        }
    }
    // Makes the rate half the link rate, with a flat history of `rtt`.
    void congest(Duration rtt) {
        ack(microseconds(60), microseconds(2));
        ASSERT_DOUBLE_EQ(timely.rate_bytes_per_s(), kHundredGbit / 2);
        settle(rtt);
        ASSERT_DOUBLE_EQ(timely.rate_bytes_per_s(), kHundredGbit / 2);
    }
    Timely timely{kHundredGbit, kBegin};
    Instant now = kBegin;
};

TEST_F(TimelyTest, BeginsUncongestedAtLinkRate) {
    EXPECT_TRUE(timely.is_uncongested());
    EXPECT_EQ(timely.rate_bytes_per_s(), kHundredGbit);
    EXPECT_EQ(timely.gap(12'500), microseconds(1));
    EXPECT_EQ(timely.next_deadline(), Instant::never());
}

TEST_F(TimelyTest, TheBypassLeavesNoTrace) {
    Timely spared(kHundredGbit, kBegin);
    for (int i = 0; i < 1000; ++i) {
        ack(microseconds(i % 50), microseconds(1));
    }
    EXPECT_TRUE(timely.is_uncongested());
    for (const int us : {55, 54, 70, 20, 300, 90, 80, 70, 60, 55, 52, 51, 2000}) {
        now = now + nanoseconds(700);
        timely.on_ack(rtt_us(us), now);
        spared.on_ack(rtt_us(us), now);
        EXPECT_EQ(timely.rate_bytes_per_s(), spared.rate_bytes_per_s());
    }
}

TEST_F(TimelyTest, TheBypassEndsAtTheLowThreshold) {
    ack(nanoseconds(49'999), microseconds(2));
    EXPECT_TRUE(timely.is_uncongested());
    ack(nanoseconds(50'000), microseconds(2));
    EXPECT_FALSE(timely.is_uncongested());
    EXPECT_DOUBLE_EQ(timely.rate_bytes_per_s(), kHundredGbit / 2);
    EXPECT_EQ(timely.gap(12'500), microseconds(2));
}

TEST_F(TimelyTest, BelowTheLowThresholdTheRateRisesByStepsScaledByTime) {
    congest(microseconds(60));
    double rate = kHundredGbit / 2;
    for (const auto& [later_ns, share] :
         std::vector<std::pair<int, double>>{{2000, 1}, {1000, 0.5}, {500, 0.25}, {0, 0}, {1'000'000, 1}}) {
        ack(microseconds(10), nanoseconds(later_ns));
        rate += 5e6 * share;
        EXPECT_DOUBLE_EQ(timely.rate_bytes_per_s(), rate);
    }
    // There a rising RTT does not matter.
    ack(microseconds(49), microseconds(2));
    EXPECT_DOUBLE_EQ(timely.rate_bytes_per_s(), rate + 5e6);
}

TEST_F(TimelyTest, ARisingRttCutsByTheGradient) {
    congest(microseconds(60));
    ack(nanoseconds(60'500), microseconds(2));
    const double gradient = 0.46 * 500 / 2000;
    EXPECT_NEAR(timely.rate_bytes_per_s(), kHundredGbit / 2 * (1 - 0.26 * gradient), 1);
    const double rate = timely.rate_bytes_per_s();
    ack(nanoseconds(60'500), microseconds(1));  // the mean fades; half the weight
    EXPECT_NEAR(timely.rate_bytes_per_s(), rate * (1 - 0.5 * 0.26 * gradient * 0.54), 1);
}

TEST_F(TimelyTest, FiveFallingRttsBeginTheHyperactiveIncrease) {
    congest(microseconds(60));
    double rate = kHundredGbit / 2;
    for (int falling = 1; falling <= 8; ++falling) {
        ack(nanoseconds(60'000 - falling * 100), microseconds(2));
        rate += falling >= 5 ? 25e6 : 5e6;
        EXPECT_DOUBLE_EQ(timely.rate_bytes_per_s(), rate) << falling;
    }
    ack(nanoseconds(59'200), microseconds(2));  // flat: the row is broken, the mean still falls
    EXPECT_DOUBLE_EQ(timely.rate_bytes_per_s(), rate + 5e6);
}

TEST_F(TimelyTest, AboveTheHighThresholdTheRateFallsWhateverTheGradient) {
    congest(microseconds(4000));
    ack(microseconds(2000), microseconds(2));
    EXPECT_DOUBLE_EQ(timely.rate_bytes_per_s(), kHundredGbit / 2 * (1 - 0.26 * 0.5));
    const double rate = timely.rate_bytes_per_s();
    ack(microseconds(1000), microseconds(2));  // at this RTT, the gradient counts
    EXPECT_DOUBLE_EQ(timely.rate_bytes_per_s(), rate + 5e6);
}

TEST_F(TimelyTest, NoUpdateCutsBelowHalfAndNoneBelowTheFloor) {
    double rate = kHundredGbit;
    for (int update = 0; update < 40; ++update) {
        ack(microseconds(60 + 60 * update), microseconds(2));
        EXPECT_GE(timely.rate_bytes_per_s(), rate / 2);
        rate = timely.rate_bytes_per_s();
    }
    EXPECT_EQ(rate, 15e6);
    EXPECT_EQ(timely.gap(1500), microseconds(100));
}

TEST_F(TimelyTest, NoUpdateRaisesAboveLinkRate) {
    congest(microseconds(60));
    for (int update = 0; update < 1249; ++update) {
        ack(microseconds(10), microseconds(2));
        ASSERT_FALSE(timely.is_uncongested());
    }
    ack(microseconds(10), microseconds(2));
    EXPECT_TRUE(timely.is_uncongested());
    EXPECT_EQ(timely.rate_bytes_per_s(), kHundredGbit);
}

TEST_F(TimelyTest, SamplesShorterThanTheLeastRttCountAsThat) {
    Timely other(kHundredGbit, kBegin);
    for (const int us : {60, 0, 55}) {
        ack(microseconds(us - (us == 0 ? 5 : 0)), microseconds(1));
        other.on_ack(rtt_us(us == 0 ? 2 : us), now);
        EXPECT_EQ(timely.rate_bytes_per_s(), other.rate_bytes_per_s());
    }
}

TEST_F(TimelyTest, SamplesAcrossAPauseAreIgnored) {
    Timely other(kHundredGbit, kBegin);
    for (const int us : {5000, 60, 9000, 62, 70}) {
        now = now + microseconds(1);
        const bool across_stall = us >= 5000;
        timely.on_ack({microseconds(us), 1024, across_stall}, now);
        if (!across_stall) {
            other.on_ack(rtt_us(us), now);
        }
        EXPECT_EQ(timely.rate_bytes_per_s(), other.rate_bytes_per_s());
    }
}

TEST_F(TimelyTest, NotificationsTimersAndPacketsChangeNothing) {
    congest(microseconds(60));
    timely.on_cnp(now);
    timely.on_timeout(now + seconds(1));
    timely.on_sent(4096, now);
    EXPECT_DOUBLE_EQ(timely.rate_bytes_per_s(), kHundredGbit / 2);
    EXPECT_EQ(timely.next_deadline(), Instant::never());
}

TEST_F(TimelyTest, TimeThatGoesBackIsNoTime) {
    congest(microseconds(60));
    ack(microseconds(10), microseconds(-500));
    EXPECT_DOUBLE_EQ(timely.rate_bytes_per_s(), kHundredGbit / 2);
    ack(microseconds(10), microseconds(501));  // 1 us after the latest known time
    EXPECT_DOUBLE_EQ(timely.rate_bytes_per_s(), kHundredGbit / 2 + 2.5e6);
}

TEST_F(TimelyTest, GapsAreRoundedUp) {
    congest(microseconds(60));
    EXPECT_EQ(timely.gap(0), nanoseconds(0));
    EXPECT_EQ(timely.gap(1), nanoseconds(1));
    EXPECT_EQ(timely.gap(625), nanoseconds(100));
    EXPECT_EQ(timely.gap(626), nanoseconds(101));
}

TEST(StallWatch, SpoilsWhatWasSentBeforeAPauseEnded) {
    StallWatch watch(microseconds(20));
    watch.on_turn(kBegin);
    EXPECT_FALSE(watch.spoils(Instant{}));
    watch.on_turn(kBegin + microseconds(20));
    EXPECT_FALSE(watch.spoils(kBegin));
    watch.on_turn(kBegin + nanoseconds(40'001));
    EXPECT_TRUE(watch.spoils(kBegin + microseconds(40)));
    EXPECT_FALSE(watch.spoils(kBegin + nanoseconds(40'001)));
    watch.on_turn(kBegin);  // going backwards is no pause
    EXPECT_FALSE(watch.spoils(kBegin + nanoseconds(40'001)));
}

class TimelyPerRoundTrip : public testing::Test {
protected:
    static constexpr std::size_t kWindow = 100'000;  // 8 us of the link
    void ack(Duration rtt) {
        now = now + microseconds(5);
        timely.on_ack({rtt, 1024}, now);
    }
    void acks(Duration rtt, int count) {
        for (int i = 0; i < count; ++i) {
            ack(rtt);
        }
    }
    Timely timely{kHundredGbit, kBegin, timely_per_round_trip(kHundredGbit, kWindow)};
    Instant now = kBegin;
};

TEST_F(TimelyPerRoundTrip, TheThresholdFollowsTheWindowAndTheLink) {
    EXPECT_EQ(timely_per_round_trip(kHundredGbit, kWindow).rtt_low, microseconds(40));
    EXPECT_EQ(timely_per_round_trip(kHundredGbit, 400'000).rtt_low, microseconds(64));
    EXPECT_EQ(timely_per_round_trip(kHundredGbit / 4, 400'000).rtt_low, microseconds(256));
    EXPECT_EQ(timely_per_round_trip(kHundredGbit, 400'000).gradient_unit, microseconds(16));
}

TEST_F(TimelyPerRoundTrip, LongSamplesAmongShortOnesArePausesOfAHost) {
    for (int i = 0; i < 100; ++i) {
        ack(microseconds(4'000));
        acks(microseconds(200), 30);
        acks(microseconds(20), 5);
        ASSERT_TRUE(timely.is_uncongested()) << i;
    }
}

TEST_F(TimelyPerRoundTrip, ARoundTripOfLongSamplesCutsOnce) {
    acks(microseconds(100), 20);
    EXPECT_TRUE(timely.is_uncongested()) << "95 us after the first";
    ack(microseconds(100));
    const double cut = timely.rate_bytes_per_s();
    EXPECT_LT(cut, kHundredGbit * 0.95);
    EXPECT_GT(cut, kHundredGbit * 0.5);
    acks(microseconds(100), 19);
    EXPECT_EQ(timely.rate_bytes_per_s(), cut);
    ack(microseconds(100));
    EXPECT_LT(timely.rate_bytes_per_s(), cut);
}

TEST_F(TimelyPerRoundTrip, WhoIsCutGrowsBackToLinkRate) {
    acks(microseconds(60), 13);
    EXPECT_FALSE(timely.is_uncongested());
    acks(microseconds(4), 100);
    EXPECT_TRUE(timely.is_uncongested());
    acks(microseconds(39), 100);
    EXPECT_TRUE(timely.is_uncongested());
}

test::BottleneckResult run(std::size_t senders, std::size_t packet_bytes, const TimelyParameters& parameters) {
    test::BottleneckConfig config;
    config.packet_bytes = packet_bytes;
    test::Bottleneck bottleneck(config, senders);
    for (std::size_t i = 0; i < senders; ++i) {
        bottleneck.add(std::make_unique<Timely>(config.link_rate_bytes_per_s, Instant{}, parameters));
    }
    return bottleneck.run();
}

TEST(TimelyOverOneQueue, RttsStayBelowTheHighThresholdAndTheLinkBusy) {
    for (const std::size_t packet_bytes : {1024U, 4096U}) {
        for (const std::size_t senders : {1U, 2U, 10U, 30U, 100U}) {
            const test::BottleneckResult result = run(senders, packet_bytes, kTimely);
            EXPECT_LT(result.rtt_max, kTimely.rtt_high) << senders;
            EXPECT_LT(result.rtt_mean, kTimely.rtt_low * 2) << senders;
            EXPECT_GT(result.utilisation, 0.4) << senders;
        }
    }
}

TEST(TimelyOverOneQueue, PatchedSharesAreEqual) {
    TimelyParameters patched;
    patched.patched = true;
    for (const std::size_t packet_bytes : {1024U, 4096U}) {
        for (const std::size_t senders : {2U, 3U, 10U, 30U, 100U}) {
            const test::BottleneckResult result = run(senders, packet_bytes, patched);
            EXPECT_GT(result.fairness, 0.95) << senders;
            EXPECT_LT(result.rtt_max, kTimely.rtt_high) << senders;
            EXPECT_GT(result.utilisation, 0.4) << senders;
        }
    }
}

}  // namespace
}  // namespace cairn::roce
