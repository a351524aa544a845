// The effects of time on calls: noticed losses, expired deadlines, numbers that stay bounded.
#include <gtest/gtest.h>

#include "rpc/common/deadlines.hpp"
#include "tests/unit/erpc/two_hosts.hpp"

namespace cairn::erpc {
namespace {

class Recovery : public TwoHosts {};

TEST_F(Recovery, ALossIsNoticedThoughEachTurnTakesLongerThanAMillisecond) {
    const SessionId session = connect();
    run(milliseconds(5));
    client.port.fate = [lost = client.port.sent()](std::uint64_t number) { return number == lost ? 0 : 1; };
    post(session, 1);
    for (const Instant end = now + milliseconds(50); now < end; now = now + microseconds(1200)) {
        client.turn(now);
        server.turn(now);
    }
    expect_all(1, CallStatus::Ok);
}

TEST_F(Recovery, AnAnswerThatWaitedForItsClientIsNoLoss) {
    const SessionId session = connect();
    run(milliseconds(5));
    post(session, 1);
    client.turn(now);
    server.turn(now);
    now = now + milliseconds(30);
    client.endpoint->on_timeout(now);  // before it reads
    run(milliseconds(5));
    expect_all(1, CallStatus::Ok);
    EXPECT_EQ(client.endpoint->statistics().retransmits, 0U);
}

TEST_F(Recovery, AWorkerThatSleepsNeedsATimerForDeadlinesOnly) {
    const SessionId session = connect();
    run(milliseconds(5));
    hold = true;
    post(session, 1);
    for (const Instant end = now + milliseconds(30); now < end; now = now + microseconds(50)) {
        client.turn(now);
        server.turn(now);
        EXPECT_GE(client.endpoint->next_deadline() - now, port::kCoarseSleep);
    }
    const Instant deadline = now + milliseconds(1);
    post(session, 2, deadline);
    client.turn(now);
    EXPECT_LE(client.endpoint->next_deadline(), deadline + Deadlines::kSlot);
}

TEST_F(Recovery, CallsThatNeverLeftUseUpNoNumbers) {
    const SessionId session = connect();
    run(milliseconds(5));
    hold = true;
    for (std::uint64_t tag = 0; tag < 4; ++tag) {  // one for each credit
        post(session, tag);
    }
    for (std::uint64_t tag = 10; tag < 5'010; ++tag) {
        client.endpoint->cancel(post(session, tag).id, now);
    }
    run(milliseconds(1));
    hold = false;
    answer_held(now);
    for (std::uint64_t tag = 6'000; tag < 6'008; ++tag) {
        post(session, tag);
    }
    run(milliseconds(20));
    for (std::uint64_t tag = 6'000; tag < 6'008; ++tag) {
        EXPECT_EQ(results.at(tag), CallStatus::Ok) << tag;
    }
    EXPECT_EQ(server.endpoint->statistics().of(Drop::FutureRequest), 0U);
}

TEST_F(Recovery, AClientWhoseNumbersRanAheadWhileTheNetworkWasAwayGoesOn) {
    const SessionId session = connect();
    post(session, 1);
    run(milliseconds(5));
    client.port.fate = [](std::uint64_t) { return 0; };
    for (std::uint64_t tag = 10; tag < 5'010; ++tag) {
        client.endpoint->cancel(post(session, tag).id, now);
        run(microseconds(50));
    }
    client.port.fate = [](std::uint64_t) { return 1; };
    post(session, 2);
    run(milliseconds(50));
    EXPECT_EQ(results.at(2), CallStatus::Ok);
    EXPECT_GT(server.endpoint->statistics().of(Drop::FutureRequest), 0U);
    expect_each_executed_at_most_once();
    post(session, 3);
    run(milliseconds(1));
    EXPECT_EQ(results.at(3), CallStatus::Ok);
}

TEST_F(Recovery, EachCallOfALongBacklogEndsAtItsOwnDeadline) {
    constexpr std::uint32_t kCalls = 65'536;
    client.config.calls_max = kCalls;
    client.restart(11);
    std::vector<SessionId> sessions;
    for (int i = 0; i < 8; ++i) {
        sessions.push_back(connect());
    }
    run(milliseconds(5));
    client.port.fate = [](std::uint64_t) { return 0; };
    struct Waiting {
        const Instant* now;
        Instant deadline;
        std::uint32_t ended;
    };
    std::vector<Waiting> waiting;
    for (std::uint32_t i = 0; i < kCalls; ++i) {  // in random order, and some beyond the span of the wheel
        waiting.push_back({&now, now + microseconds(1'000 + i * 7'919 % 1'500'000), 0});
    }
    Call call;
    call.completion = [](void* context, const CallResult& result) {
        auto& each = *static_cast<Waiting*>(context);
        EXPECT_EQ(result.status, CallStatus::DeadlinePassed);
        EXPECT_GE(*each.now, each.deadline);
        EXPECT_LE(*each.now - each.deadline, kScanInterval + Deadlines::kSlot);
        ++each.ended;
    };
    for (std::uint32_t i = 0; i < kCalls; ++i) {
        call.context = &waiting[i];
        call.deadline = waiting[i].deadline;
        ASSERT_EQ(client.endpoint->post(sessions[i % 8], call, now).verdict, PostVerdict::Posted);
    }
    for (const Instant end = now + milliseconds(1'502); now < end; now = now + kScanInterval) {
        client.endpoint->on_timeout(now);
        client.worker->sender().flush(now);
    }
    EXPECT_EQ(client.endpoint->calls_pending(), 0U);
    for (const Waiting& each : waiting) {
        ASSERT_EQ(each.ended, 1U);
    }
    client.endpoint->check_invariants();
}

TEST_F(Recovery, CallsLeaveTheMiddleAndTheEndsOfABacklogAndTheOthersKeepTheirOrder) {
    const SessionId session = connect();
    std::vector<CallId> ids;
    for (std::uint64_t tag = 0; tag < 30; ++tag) {
        ids.push_back(post(session, tag).id);
    }
    for (const std::size_t tag : {0U, 5U, 6U, 15U, 28U, 29U}) {
        EXPECT_TRUE(client.endpoint->cancel(ids[tag], now));
    }
    post(session, 30);
    run(milliseconds(20));
    EXPECT_EQ(results.size(), 31U);
    EXPECT_EQ(executed.size(), 25U);
    EXPECT_EQ(results.at(30), CallStatus::Ok);
}

TEST(ErpcDeadlines, AreNeverEarlyNorLaterThanASlot) {
    Deadlines deadlines(4);
    Instant now{1'000'000'123};
    const auto none = [](std::uint32_t) { FAIL(); };
    deadlines.advance(now, none);
    EXPECT_EQ(deadlines.next_due(), Instant::never());
    const Instant due = now + microseconds(777);
    (void)deadlines.insert(3, due);
    const Deadlines::Handle cancelled = deadlines.insert(2, due);
    deadlines.cancel(cancelled);
    EXPECT_GE(deadlines.next_due(), due);
    EXPECT_LE(deadlines.next_due(), due + Deadlines::kSlot);
    deadlines.advance(due - nanoseconds(1), none);
    int handed = 0;
    deadlines.advance(due + Deadlines::kSlot, [&handed](std::uint32_t call) {
        EXPECT_EQ(call, 3U);
        ++handed;
    });
    EXPECT_EQ(handed, 1);
}

}  // namespace
}  // namespace cairn::erpc
