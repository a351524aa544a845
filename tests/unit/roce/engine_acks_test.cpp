// Acknowledgements by count or time between engines: they leave when they are due, cost few packets, and close no
// connection early.
#include <gtest/gtest.h>

#include "lib/roce/rc/limits.hpp"
#include "tests/unit/roce/engine_host.hpp"

namespace cairn::roce {
namespace {

struct EngineAcks : EnginePair {
    void SetUp() override {
        start({});
        a->delayed_acks = b->delayed_acks = true;
    }
    void write(Engine::RcQp& qp, bool signalled = false, std::uint64_t wr_id = 0) {
        SendRequest one = request(WorkOpcode::RdmaWrite, wr_id);
        one.signalled = signalled;
        ASSERT_EQ(a->post(qp, one, 0, 8), PostVerdict::Posted);
    }
    // Makes a connection whose first message, which asks, has been answered.
    Ends begin() {
        const Ends ends = connect();
        write(*ends.first);
        run();
        EXPECT_FALSE(waits(*ends.first));
        return ends;
    }
    static bool waits(const Engine::RcQp& qp) {
        return qp.pair.requester().unacknowledged_psn() != qp.pair.requester().next_psn();
    }
    static std::uint64_t packets(const EngineHost& host) {
        return host.engine.counters().of(EngineCounter::PacketsSent);
    }
    void pass(Duration span) {
        now = now + span;
        run();
    }
};

TEST_F(EngineAcks, OneLeavesWhenItsTimeIsOver) {
    const auto [here, there] = begin();
    const std::uint64_t before = packets(*b);
    for (int i = 0; i < 5; ++i) {
        write(*here);
        run();
    }
    EXPECT_EQ(packets(*b), before);
    pass(rc::kAckDelay - microseconds(20));
    EXPECT_TRUE(waits(*here));
    pass(microseconds(40));
    EXPECT_FALSE(waits(*here));
    EXPECT_EQ(packets(*b), before + 1);
    EXPECT_EQ(there->pair.next_deadline(), Instant::never());
}

TEST_F(EngineAcks, ACompletionIsNotPutOff) {
    const auto [here, there] = begin();
    write(*here);
    write(*here, true, 7);
    run();
    EXPECT_EQ(done(a->sends), (std::vector<std::uint64_t>{7}));
    EXPECT_FALSE(waits(*here));
}

TEST_F(EngineAcks, ManyMessagesFillNoQueue) {
    const auto [here, there] = begin();
    const std::uint64_t before = packets(*b);
    for (int i = 0; i < 2000; ++i) {
        write(*here);  // in time, without a turn of the timer
        run();
    }
    EXPECT_GE(packets(*b) - before, 2000 / rc::kAckEveryMessages);
    EXPECT_LE(packets(*b) - before, 2000 / rc::kAckEveryMessages + 2000 / rc::kAskEveryMessages + 1);
}

// As many requests as the queue holds, again and again as soon as there is room: it never waits for the peer's time.
TEST_F(EngineAcks, AFullQueueWaitsForNoTime) {
    for (const std::uint32_t slots : {1U, 2U, 3U, 7U, 16U}) {
        QpCapacity capacity;
        capacity.send_slots = slots;
        const auto [here, there] = connect(capacity);
        SendRequest one = request(WorkOpcode::RdmaWrite);
        one.signalled = false;
        for (int posted = 0; posted < 200;) {
            const int before = posted;
            while (a->post(*here, one, 0, 8) == PostVerdict::Posted) {
                ++posted;
            }
            run();
            ASSERT_GT(posted, before) << slots;
        }
    }
}

TEST_F(EngineAcks, AHostThatWasAwayAcknowledgesLateAndNothingIsSentAgain) {
    const auto [here, there] = begin();
    write(*here);
    run();
    for (const Instant back = now + milliseconds(3); now < back; now = now + microseconds(500)) {
        (void)a->turn(now);  // the other one takes no turn
    }
    run();
    EXPECT_FALSE(waits(*here));
    EXPECT_EQ(a->engine.counters().of(EngineCounter::PacketsResent), 0U);
}

TEST_F(EngineAcks, WhatWasLostIsSentAgainThoughNobodyAsked) {
    const auto [here, there] = begin();
    a->port.fate = [](std::uint64_t) { return 0; };
    write(*here);
    run();
    a->port.fate = [](std::uint64_t) { return 1; };
    EXPECT_TRUE(waits(*here));
    for (const Instant end = now + kRtoMin + rc::kAckDelay + microseconds(100); now < end;) {
        pass(microseconds(500));
    }
    EXPECT_FALSE(waits(*here));
}

}  // namespace
}  // namespace cairn::roce
