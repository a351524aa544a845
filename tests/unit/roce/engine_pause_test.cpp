// Pauses of a worker, which was preempted or slept until something was due: how they count, and for how long.
#include "lib/roce/engine.hpp"
#include "tests/unit/roce/engine_host.hpp"

namespace cairn::roce {
namespace {

using enum WorkOpcode;

struct EnginePause : EnginePair {
    static constexpr std::uint32_t kBytes = 16 * 4096;
    static constexpr Duration kAway = milliseconds(30);

    void SetUp() override {
        start({});
        qps = connect();
        write(8);
        for (int i = 0; i < 4; ++i) {
            now = now + microseconds(100);
            (void)b->turn(now);
            (void)a->turn(now);
        }
        ASSERT_TRUE(trip().known());
        (void)done(a->sends);
    }
    void write(std::uint32_t bytes) {
        ASSERT_EQ(a->post(*qps.first, request(RdmaWrite, 1), 0, bytes), PostVerdict::Posted);
        (void)a->turn(now);
    }
    [[nodiscard]] const RoundTrip& trip() const { return qps.first->pair.requester().round_trip(); }
    [[nodiscard]] std::uint64_t resent() const { return a->engine.counters().of(EngineCounter::PacketsResent); }
    Ends qps{};
};

TEST_F(EnginePause, WhatMayLieUnreadIsNotSentAgain) {
    write(kBytes);
    (void)b->turn(now);
    now = now + kAway;
    a->engine.on_timeout(now);  // the answer is still in the port
    a->engine.transmit(now);
    EXPECT_EQ(resent(), 0U);
    (void)a->turn(now);
    EXPECT_EQ(done(a->sends).size(), 1U);
    EXPECT_EQ(resent(), 0U);
}

TEST_F(EnginePause, ItIsNoRoundTrip) {
    const Duration before = trip().smoothed();
    write(8);
    (void)b->turn(now);
    now = now + kAway;
    (void)a->turn(now);
    EXPECT_EQ(done(a->sends).size(), 1U);
    EXPECT_EQ(trip().smoothed(), before);
}

// A worker that sleeps until something is due pauses each time.
TEST_F(EnginePause, ItDefersATimeoutOnceAndNotForLong) {
    a->port.fate = [](std::uint64_t) { return 0; };
    write(kBytes);
    const Instant sent = now;
    for (int turns = 0; turns < 8 && resent() == 0; ++turns) {
        now = std::max(now, a->engine.next_deadline());
        (void)a->turn(now);
    }
    EXPECT_GT(resent(), 0U);
    EXPECT_LE(now - sent, kRtoMin * 2 + milliseconds(1));
}

TEST_F(EnginePause, AWorkerThatSleepsStillLearnsHowLongItsPeerTakes) {
    for (int i = 0; i < 40; ++i) {
        write(8);
        now = now + milliseconds(6);
        (void)b->turn(now);
        (void)a->turn(now);
    }
    EXPECT_GT(trip().smoothed(), milliseconds(5));
}

}  // namespace
}  // namespace cairn::roce
