// Silence in terms of round trips: it is noticed early, the peer is given up no earlier than configured, and our own
// pauses do not count.
#include "lib/roce/pace/round_trip.hpp"

#include <gtest/gtest.h>

#include "tests/unit/rc/rc_requester_fixture.hpp"

namespace cairn::roce::rc {
namespace {

TEST(RcRoundTrip, TheTimeoutIsTheMeanAndFourTimesTheVariationDoubledPerSilence) {
    RoundTrip trip;
    EXPECT_FALSE(trip.known());
    trip.sample(milliseconds(8));
    EXPECT_EQ(trip.timeout(0), milliseconds(8 + 4 * 4));
    EXPECT_EQ(trip.timeout(2), milliseconds(4 * 24));
    trip.sample(milliseconds(16));
    EXPECT_EQ(trip.smoothed(), milliseconds(9));
    EXPECT_EQ(trip.timeout(0), milliseconds(9 + 4 * 5));
    for (int i = 0; i < 200; ++i) {
        trip.sample(microseconds(20));
    }
    EXPECT_LT(trip.smoothed(), microseconds(21));
    EXPECT_EQ(trip.timeout(0), kRtoMin);
    EXPECT_EQ(trip.timeout(3), kRtoMin * 8);
    EXPECT_EQ(trip.timeout(255), trip.timeout(10));
}

TEST(RcRoundTrip, NoTimeAtAllIsATimeToo) {
    RoundTrip trip;
    trip.sample({});
    EXPECT_TRUE(trip.known());
    EXPECT_EQ(trip.timeout(0), kRtoMin);
}

struct RcEarly : RcRequester {
    StallWatch stalls{milliseconds(1)};

    void SetUp() override { begin(14); }

    void begin(std::uint8_t ack_timeout_code) {
        host = std::make_unique<RcHost>();
        QpContext context{host->memory, host->send_completions, host->receive_completions, host->counters};
        context.stalls = &stalls;
        host->qp.reset();
        host->qp = std::make_unique<QueuePair>(RcHost::kQpn, host->pd, QpCapacity{}, context);
        QpAttributes values = RcHost::usual_attributes();
        values.send_psn = psn;
        values.retry_count = 1;
        values.ack_timeout = ack_timeout_code;
        host->bring_to(QpState::Rts, values);
        turn(now);
    }
    // Takes the worker's turns up to then, without a pause.
    void turn(Instant until) {
        for (Instant at = last_turn; at < until; at = at + microseconds(500)) {
            stalls.on_turn(at);
        }
        stalls.on_turn(until);
        last_turn = until;
        now = until;
    }
    // Makes one WRITE whose answer takes this long.
    void round_trip(Duration takes) {
        post(WorkOpcode::RdmaWrite, 4, 0, false);
        ASSERT_EQ(sent().size(), 1U);
        turn(now + takes);
        acknowledge(next++);
    }
    [[nodiscard]] Duration waits() const { return host->qp->next_deadline() - now; }

    Instant last_turn{};
    std::uint32_t next = 0;
};

TEST_F(RcEarly, WithoutASampleTheConfiguredTimeHolds) {
    post(WorkOpcode::RdmaWrite, 4, 1);
    EXPECT_EQ(sent().size(), 1U);
    EXPECT_EQ(waits(), ack_timeout(14));
}

TEST_F(RcEarly, SilenceIsNoticedEarlyAndDoubledButCostsRetriesByTheConfiguredTimeOnly) {
    round_trip(microseconds(50));
    post(WorkOpcode::RdmaWrite, 4, 1);
    EXPECT_EQ(sent().size(), 1U);
    const Instant begin = now;
    // 4, 8, 16, 32 ms pass, then the configured 67 ms: the one retry. After the same time again it is given up.
    for (const int after_ms : {4, 12, 28, 60}) {
        EXPECT_EQ(host->qp->next_deadline(), begin + milliseconds(after_ms));
        turn(host->qp->next_deadline());
        host->qp->on_timeout(now);
        EXPECT_EQ(sent(), (Packets{{Operation::WriteOnly, 1}}));
    }
    EXPECT_EQ(host->counters.of(RcCounter::EarlyTimeout), 4U);
    EXPECT_EQ(host->counters.of(RcCounter::Timeout), 0U);
    turn(begin + ack_timeout(14));
    host->qp->on_timeout(now);
    EXPECT_EQ(sent().size(), 1U);
    EXPECT_EQ(host->counters.of(RcCounter::Timeout), 1U);
    while (host->qp->state() == QpState::Rts) {
        turn(host->qp->next_deadline());
        host->qp->on_timeout(now);
        (void)sent();
    }
    EXPECT_EQ(now, begin + ack_timeout(14) * 2);
    EXPECT_EQ(completions(), (Completions{{1, CompletionStatus::RetryExceeded}}));
}

TEST_F(RcEarly, AnAnswerMakesTheNextSilenceShortAgain) {
    round_trip(microseconds(50));
    post(WorkOpcode::RdmaWrite, 4, 1);
    EXPECT_EQ(sent().size(), 1U);
    turn(host->qp->next_deadline());
    host->qp->on_timeout(now);
    EXPECT_EQ(sent().size(), 1U);
    EXPECT_EQ(waits(), kRtoMin * 2);
    acknowledge(1);
    EXPECT_EQ(host->qp->next_deadline(), Instant::never());
    post(WorkOpcode::RdmaWrite, 4, 2);
    EXPECT_EQ(sent().size(), 1U);
    EXPECT_EQ(waits(), kRtoMin);
}

TEST_F(RcEarly, TheConfiguredTimeIsNeverExceeded) {
    begin(9);  // 2 ms, below the minimum
    round_trip(microseconds(50));
    post(WorkOpcode::RdmaWrite, 4, 1);
    EXPECT_EQ(sent().size(), 1U);
    EXPECT_EQ(waits(), ack_timeout(9));
}

TEST_F(RcEarly, WhoNeverGivesUpNoticesSilenceAllTheSame) {
    begin(0);
    post(WorkOpcode::RdmaWrite, 4, 0);
    EXPECT_EQ(sent().size(), 1U);
    EXPECT_EQ(host->qp->next_deadline(), Instant::never());
    turn(now + microseconds(50));
    acknowledge(0);
    post(WorkOpcode::RdmaWrite, 4, 1);
    EXPECT_EQ(sent().size(), 1U);
    for (int i = 0; i < 300; ++i) {
        ASSERT_EQ(waits(), kRtoMin * (1 << std::min(i, 10)));
        last_turn = now = host->qp->next_deadline();
        host->qp->on_timeout(now);
        EXPECT_EQ(sent().size(), 1U);
    }
    EXPECT_EQ(host->qp->state(), QpState::Rts);
}

TEST_F(RcEarly, WhatWasSentTwiceOrOverAPauseIsNoMeasure) {
    post(WorkOpcode::RdmaWrite, 4, 0, false);
    EXPECT_EQ(sent().size(), 1U);
    stalls.on_turn(now);
    now = now + milliseconds(30);  // a pause
    last_turn = now;
    stalls.on_turn(now);
    acknowledge(0);
    EXPECT_FALSE(host->qp->requester().round_trip().known());
    post(WorkOpcode::RdmaWrite, 4, 1, false);
    EXPECT_EQ(sent().size(), 1U);
    turn(host->qp->next_deadline());
    host->qp->on_timeout(now);
    EXPECT_EQ(sent().size(), 1U);
    acknowledge(1);
    EXPECT_FALSE(host->qp->requester().round_trip().known());
    next = 2;
    round_trip(microseconds(70));
    EXPECT_EQ(host->qp->requester().round_trip().smoothed(), microseconds(70));
}

TEST_F(RcEarly, AfterAPauseOfOurOwnNothingIsLostYet) {
    round_trip(microseconds(50));
    post(WorkOpcode::RdmaWrite, 4, 1);
    EXPECT_EQ(sent().size(), 1U);
    now = now + milliseconds(30);
    last_turn = now;
    stalls.on_turn(now);
    host->qp->on_timeout(now);
    EXPECT_TRUE(sent().empty());
    EXPECT_EQ(waits(), kRtoMin);
    turn(host->qp->next_deadline());
    host->qp->on_timeout(now);
    EXPECT_EQ(sent().size(), 1U);
}

TEST_F(RcEarly, AReadIsTimedByItsFirstResponse) {
    post(WorkOpcode::RdmaRead, 600, 1);
    EXPECT_EQ(sent().size(), 1U);
    turn(now + microseconds(80));
    respond(Operation::ReadResponseFirst, 0, std::vector<std::uint8_t>(256));
    EXPECT_EQ(host->qp->requester().round_trip().smoothed(), microseconds(80));
}

}  // namespace
}  // namespace cairn::roce::rc
