// DCQCN at exact virtual times, and its effect on flows over one marking queue.
#include "lib/roce/pace/dcqcn.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "tests/unit/roce/bottleneck.hpp"

namespace cairn::roce {
namespace {

constexpr double kLink = 8e9;
constexpr double kGain = 1.0 / 256;
constexpr Instant kStart{1'000'000'000};
constexpr Duration kRound = kDcqcn.increase_period;

class DcqcnTest : public testing::Test {
protected:
    // Reports two CNPs at once: the rate is a quarter of the link rate, the target half of it.
    void congest() {
        dcqcn.on_cnp(kStart);
        dcqcn.on_cnp(kStart);
        ASSERT_DOUBLE_EQ(dcqcn.rate_bytes_per_s(), 2e9);
        ASSERT_DOUBLE_EQ(dcqcn.target_bytes_per_s(), 4e9);
    }
    void expect_rate(double target, double rate) {
        EXPECT_DOUBLE_EQ(dcqcn.target_bytes_per_s(), target);
        EXPECT_DOUBLE_EQ(dcqcn.rate_bytes_per_s(), rate);
    }
    Dcqcn dcqcn{kLink, kStart};
};

TEST_F(DcqcnTest, BeginsUncongestedAtLinkRate) {
    EXPECT_TRUE(dcqcn.is_uncongested());
    EXPECT_EQ(dcqcn.next_deadline(), Instant::never());
    EXPECT_EQ(dcqcn.gap(8000), microseconds(1));
    dcqcn.on_sent(100'000'000, kStart);
    dcqcn.on_ack({seconds(1), 1024}, kStart);
    dcqcn.on_timeout(kStart + seconds(1));
    expect_rate(kLink, kLink);
}

TEST_F(DcqcnTest, TheFirstNotificationHalvesTheRate) {
    dcqcn.on_cnp(kStart);
    expect_rate(kLink, kLink / 2);
    EXPECT_EQ(dcqcn.alpha(kStart), 1);
    EXPECT_FALSE(dcqcn.is_uncongested());
    EXPECT_EQ(dcqcn.next_deadline(), kStart + kRound);
}

TEST_F(DcqcnTest, TheTimerHalvesTheWayBackThenRaisesTheTarget) {
    congest();
    Instant now = kStart;
    for (const double rate : {3e9, 3.5e9, 3.75e9, 3.875e9}) {
        now = now + kRound;
        EXPECT_EQ(dcqcn.next_deadline(), now);
        dcqcn.on_timeout(now - nanoseconds(1));
        EXPECT_LT(dcqcn.rate_bytes_per_s(), rate);
        dcqcn.on_timeout(now);
        expect_rate(4e9, rate);
    }
    dcqcn.on_timeout(now + kRound);
    expect_rate(4.005e9, 3.94e9);
    dcqcn.on_timeout(now + kRound * 2);
    expect_rate(4.01e9, 3.975e9);
}

TEST_F(DcqcnTest, TheByteCounterDoesTheSame) {
    congest();
    for (const double rate : {3e9, 3.5e9, 3.75e9, 3.875e9}) {
        const double before = dcqcn.rate_bytes_per_s();
        dcqcn.on_sent(9'999'999, kStart);
        expect_rate(4e9, before);
        dcqcn.on_sent(1, kStart);
        expect_rate(4e9, rate);
    }
    dcqcn.on_sent(10'000'000, kStart);
    expect_rate(4.005e9, 3.94e9);
}

TEST_F(DcqcnTest, BothBeyondFastRecoveryRaiseTheTargetByHyperSteps) {
    congest();
    dcqcn.on_timeout(kStart + kRound * 6);  // rounds 5 and 6 are additive
    EXPECT_DOUBLE_EQ(dcqcn.target_bytes_per_s(), 4.01e9);
    const Instant now = kStart + kRound * 6;
    dcqcn.on_sent(50'000'000, now);
    EXPECT_DOUBLE_EQ(dcqcn.target_bytes_per_s(), 4.035e9);
    dcqcn.on_sent(10'000'000, now);
    EXPECT_DOUBLE_EQ(dcqcn.target_bytes_per_s(), 4.085e9);
    dcqcn.on_sent(10'000'000, now);
    EXPECT_DOUBLE_EQ(dcqcn.target_bytes_per_s(), 4.135e9);
    dcqcn.on_timeout(now + kRound);
    EXPECT_DOUBLE_EQ(dcqcn.target_bytes_per_s(), 4.235e9);
}

TEST_F(DcqcnTest, ANotificationBeginsBothCountersAnew) {
    congest();
    dcqcn.on_timeout(kStart + kRound * 6);
    dcqcn.on_sent(69'999'999, kStart + kRound * 6);
    const Instant now = kStart + kRound * 6 + microseconds(20);
    const double rate = dcqcn.rate_bytes_per_s();
    const double alpha = dcqcn.alpha(now);
    dcqcn.on_cnp(now);
    const double cut = rate * (1 - alpha / 2);
    expect_rate(rate, cut);
    EXPECT_EQ(dcqcn.next_deadline(), now + kRound);
    dcqcn.on_sent(1, now);
    expect_rate(rate, cut);
    dcqcn.on_timeout(now + kRound);
    expect_rate(rate, (rate + cut) / 2);
    dcqcn.on_sent(9'999'999, now + kRound);
    expect_rate(rate, ((rate + cut) / 2 + rate) / 2);
}

TEST_F(DcqcnTest, AlphaDecaysWithoutNotificationsAndRisesWithThem) {
    const Duration period = kDcqcn.alpha_period;
    EXPECT_EQ(dcqcn.alpha(kStart + period - nanoseconds(1)), 1);
    EXPECT_EQ(dcqcn.alpha(kStart + period), 1 - kGain);
    EXPECT_NEAR(dcqcn.alpha(kStart + period * 1000), std::pow(1 - kGain, 1000), 1e-12);
    EXPECT_NEAR(dcqcn.alpha(kStart + seconds(86'400)), 0, 1e-300);
    EXPECT_EQ(dcqcn.alpha(kStart - seconds(1)), 1);
    const Instant now = kStart + period * 100;
    const double seen = std::pow(1 - kGain, 100);
    dcqcn.on_cnp(now);
    EXPECT_NEAR(dcqcn.rate_bytes_per_s(), kLink * (1 - seen / 2), 1);
    EXPECT_NEAR(dcqcn.alpha(now), (1 - kGain) * seen + kGain, 1e-12);
    EXPECT_NEAR(dcqcn.alpha(now + period), (1 - kGain) * dcqcn.alpha(now), 1e-12);
}

TEST_F(DcqcnTest, LateTimersEndWhereTimelyOnesDo) {
    Dcqcn punctual(kLink, kStart);
    Dcqcn by_sending(kLink, kStart);
    Dcqcn by_notification(kLink, kStart);
    const Instant late = kStart + kRound * 777 + nanoseconds(7);
    for (Dcqcn* each : {&dcqcn, &punctual, &by_sending, &by_notification}) {
        each->on_cnp(kStart);
        each->on_cnp(kStart);
    }
    while (punctual.next_deadline() <= late) {
        punctual.on_timeout(punctual.next_deadline());
    }
    dcqcn.on_timeout(late);
    by_sending.on_sent(1, late);
    EXPECT_FALSE(punctual.is_uncongested());
    for (Dcqcn* each : {&dcqcn, &by_sending}) {
        EXPECT_EQ(each->rate_bytes_per_s(), punctual.rate_bytes_per_s());
        EXPECT_EQ(each->target_bytes_per_s(), punctual.target_bytes_per_s());
        EXPECT_EQ(each->next_deadline(), punctual.next_deadline());
    }
    by_notification.on_cnp(late);
    EXPECT_EQ(by_notification.target_bytes_per_s(), punctual.rate_bytes_per_s());
}

TEST_F(DcqcnTest, WithinAStepOfLinkRateTheFlowIsUncongested) {
    dcqcn.on_cnp(kStart);
    // 4e9 below it, halved in each round: 3.9e6 after ten.
    dcqcn.on_timeout(kStart + kRound * 9);
    EXPECT_FALSE(dcqcn.is_uncongested());
    dcqcn.on_timeout(kStart + kRound * 10);
    EXPECT_TRUE(dcqcn.is_uncongested());
    expect_rate(kLink, kLink);
    EXPECT_EQ(dcqcn.next_deadline(), Instant::never());
}

TEST_F(DcqcnTest, NoCutGoesBelowTheFloorAndADayOfRestLeadsBackToLinkRate) {
    for (int i = 0; i < 100; ++i) {
        dcqcn.on_cnp(kStart);
    }
    EXPECT_EQ(dcqcn.rate_bytes_per_s(), 15e6);
    EXPECT_EQ(dcqcn.gap(1500), microseconds(100));
    dcqcn.on_timeout(kStart + seconds(86'400));
    EXPECT_TRUE(dcqcn.is_uncongested());
}

TEST_F(DcqcnTest, TimeThatGoesBackIsNoTime) {
    congest();
    dcqcn.on_timeout(kStart - seconds(1));
    dcqcn.on_sent(1000, kStart - seconds(1));
    expect_rate(4e9, 2e9);
    dcqcn.on_cnp(kStart - seconds(1));
    EXPECT_LT(dcqcn.rate_bytes_per_s(), 1.01e9);
    EXPECT_GE(dcqcn.alpha(kStart), 0.99);
}

TEST(DcqcnNotificationPoint, AnswersMarksAtMostOncePerInterval) {
    DcqcnNotificationPoint point;
    EXPECT_TRUE(point.on_marked(kStart));
    EXPECT_FALSE(point.on_marked(kStart));
    EXPECT_FALSE(point.on_marked(kStart + nanoseconds(49'999)));
    EXPECT_FALSE(point.on_marked(kStart - seconds(1)));
    EXPECT_TRUE(point.on_marked(kStart + microseconds(50)));
    EXPECT_FALSE(point.on_marked(kStart + microseconds(99)));
    EXPECT_TRUE(point.on_marked(kStart + seconds(1)));
    EXPECT_FALSE(point.on_marked(kStart + seconds(1) + microseconds(49)));
    EXPECT_TRUE(DcqcnNotificationPoint{}.on_marked(Instant{-5}));
}

TEST(DcqcnOverOneQueue, SharesAreEqualTheLinkBusyAndTheQueueShort) {
    for (const std::size_t senders : {2U, 3U, 10U, 30U, 100U}) {
        test::BottleneckConfig config;
        config.warm_up = milliseconds(50);  // its steps are 55 us apart
        config.measured = milliseconds(20);
        test::Bottleneck bottleneck(config, senders);
        for (std::size_t i = 0; i < senders; ++i) {
            bottleneck.add(std::make_unique<Dcqcn>(config.link_rate_bytes_per_s, Instant{}));
        }
        const test::BottleneckResult result = bottleneck.run();
        EXPECT_GT(result.fairness, 0.95) << senders;
        EXPECT_GT(result.utilisation, 0.9) << senders;
        EXPECT_LT(result.rtt_mean, microseconds(50)) << senders;
        EXPECT_LT(result.rtt_max, microseconds(200)) << senders;
    }
}

}  // namespace
}  // namespace cairn::roce
