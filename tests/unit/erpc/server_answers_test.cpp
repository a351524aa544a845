// The answers that a server keeps: every call ends even if memory for them is short, and old answers are dropped.
#include <gtest/gtest.h>

#include "tests/unit/erpc/server_memory.hpp"

namespace cairn::erpc {
namespace {

TEST_F(ServerMemory, ACallThatFindsNoRoomForItsAnswerIsExecutedWhenThereIs) {
    server.restart(22, kAnswerTakes);
    answer_by_size(kAnswerBytes);
    const SessionId first = connect();
    const SessionId second = connect();
    run(milliseconds(5));
    ask(first, 1);
    run(milliseconds(1));
    ask(second, 2);
    run(milliseconds(1));
    EXPECT_EQ(executed.count(2), 0U);
    run(milliseconds(300));
    EXPECT_EQ(results.at(1), CallStatus::Ok);
    EXPECT_EQ(results.at(2), CallStatus::Ok);
    expect_each_executed_at_most_once();
    EXPECT_GE(drops(Drop::AnswerForgotten), 1U);
}

TEST_F(ServerMemory, ALargeRequestThatFindsNoRoomForItsAnswerIsExecutedWhenThereIs) {
    server.restart(22, std::size_t{kAnswerTakes} * 4);
    answer_by_size(kAnswerBytes * 4);
    const SessionId first = connect();
    const SessionId second = connect();
    run(milliseconds(5));
    ask(first, 1);
    run(milliseconds(1));
    for (const std::uint64_t tag : {2U, 3U}) {
        ask(second, tag);
    }
    run(milliseconds(1'000));
    for (const std::uint64_t tag : {1U, 2U, 3U}) {
        EXPECT_EQ(results.at(tag), CallStatus::Ok) << tag;
    }
    expect_each_executed_at_most_once();
}

// Each slot asks again at once, so that none is ever idle for long.
TEST_F(ServerMemory, SlotsTakeTurnsWithWhatIsTooLittleForAll) {
    constexpr std::uint64_t kCalls = 4'000;
    constexpr std::uint64_t kSessions = 32;
    client.config.sessions_max = server.config.sessions_max = kSessions * 2;  // one host may have no more than its
                                                                              // share
    client.config.credits = kSlotsPerSession;
    client.config.calls_max = kCalls;
    client.restart(11);
    client.endpoint->set_session_callback(&TwoHosts::on_session, this);
    server.restart(22, std::size_t{kAnswerTakes} * 64);  // enough for a quarter of the slots
    answer_by_size(kAnswerBytes);
    std::vector<SessionId> sessions;
    for (std::uint64_t i = 0; i < kSessions; ++i) {
        sessions.push_back(connect());
    }
    run(milliseconds(5));
    for (std::uint64_t tag = 0; tag < kCalls; ++tag) {
        ask(sessions[tag % kSessions], tag);
    }
    run(seconds(3));
    expect_all(kCalls, CallStatus::Ok);
    expect_each_executed_at_most_once();
    EXPECT_GT(drops(Drop::NoBuffer), 0U);
}

// One session has all memory for answers, and each of its slots asks again as soon as it has its answer.
TEST_F(ServerMemory, BusySlotsGiveTheirMemoryUpToOneThatWaitsForSome) {
    client.config.credits = kSlotsPerSession;
    client.restart(11);
    server.restart(22, std::size_t{kAnswerTakes} * kSlotsPerSession);
    answer_by_size(kAnswerBytes);
    const SessionId busy = connect();
    const SessionId waits = connect();
    run(milliseconds(5));
    std::array<std::uint64_t, kSlotsPerSession> asked{};
    std::uint64_t next = 1'000;
    const auto keep_busy = [&] {
        for (std::uint64_t& tag : asked) {
            if (tag == 0 || results.count(tag) != 0) {
                tag = next++;
                ask(busy, tag);
            }
        }
        run(microseconds(50));
    };
    for (int turn = 0; turn < 20; ++turn) {
        keep_busy();
    }
    ask(waits, 1);
    for (int turn = 0; turn < 10'000 && results.count(1) == 0; ++turn) {
        keep_busy();
    }
    ASSERT_EQ(results.count(1), 1U);
    EXPECT_EQ(results.at(1), CallStatus::Ok);
    EXPECT_GT(drops(Drop::NoBuffer), 0U);
    EXPECT_GT(next, 1'000U + 8 * kSlotsPerSession);
}

TEST_F(ServerMemory, ACallWhoseAnswerWasForgottenFailsAndIsNotExecutedAgain) {
    server.restart(22, kAnswerTakes);
    answer_by_size(kAnswerBytes);
    Host other("10.0.0.3", 33);
    const SessionId session = connect_third(other);
    const SessionId first = connect();
    run_with(other, milliseconds(5));
    ask(first, 1);
    client.turn(now);
    client.port.fate = server.port.fate = [](std::uint64_t) { return 0; };  // it does not ask again either
    server.turn(now);
    server.port.fate = [](std::uint64_t) { return 1; };
    const std::array<std::uint8_t, 8> request{2};
    CallStatus status = CallStatus::Cancelled;
    other.endpoint->post(session, call_with(request, status), now);
    run_with(other, milliseconds(700));
    EXPECT_EQ(status, CallStatus::Ok);
    client.port.fate = [](std::uint64_t) { return 1; };
    run_with(other, milliseconds(300));
    EXPECT_EQ(results.at(1), CallStatus::AnswerLost);
    expect_each_executed_at_most_once();
}

// The server declines it each time, since its first refusal may be lost.
TEST_F(ServerMemory, ARequestThatWasDeclinedIsNotExecutedHoweverOftenItComes) {
    server.endpoint->set_handler(
        kEcho, [](void*, const Request& request) { EXPECT_TRUE(request.decline()); }, nullptr);
    const SessionId session = connect();
    run(milliseconds(5));
    post(session, 1, Instant::never(), 8);
    post(session, 2, Instant::never(), 3000);
    client.turn(now);
    server.port.fate = [](std::uint64_t) { return 0; };
    server.turn(now);
    server.port.fate = [](std::uint64_t) { return 1; };
    EXPECT_TRUE(results.empty());
    run(milliseconds(300));
    EXPECT_EQ(results.at(1), CallStatus::NotExecuted);
    EXPECT_EQ(results.at(2), CallStatus::NotExecuted);
    EXPECT_EQ(server.endpoint->statistics().requests_declined, 2U);
    EXPECT_EQ(server.endpoint->statistics().requests_handled, 0U);
}

TEST_F(ServerMemory, AnAnswerThatIsAskedForAgainAndAgainGivesWayToOthers) {
    server.restart(22, kAnswerTakes);
    server.endpoint->set_handler(kEcho, &TwoHosts::echo, this);
    open_session();
    answer_by_size(kAnswerBytes);
    Host other("10.0.0.3", 33);
    const SessionId session = connect_third(other);
    const std::array<std::uint8_t, 8> request{2};
    CallStatus status = CallStatus::Cancelled;
    for (int turn = 0; turn < 14'000; ++turn) {
        if (turn % 200 == 0) {
            forge(0, 1, 8, 0);  // it holds all memory, and asks for its answer each 10 ms
        }
        if (turn == 100) {
            other.endpoint->post(session, call_with(request, status), now);
        }
        run_with(other, microseconds(50));
    }
    EXPECT_EQ(status, CallStatus::Ok);
}

TEST_F(ServerMemory, AnAnswerThatNobodyAskedForAgainIsKeptForTwiceThePeersPatience) {
    answer_by_size(kAnswerBytes);
    ask(connect(), 1);
    run(milliseconds(5));
    EXPECT_EQ(server.pool->live(), 1U);
    run(kPeerTimeout);
    EXPECT_EQ(server.pool->live(), 1U);
    run(kPeerTimeout + milliseconds(100));
    EXPECT_EQ(server.pool->live(), 0U);
    EXPECT_EQ(server.endpoint->sessions_open(), 1U);
}

// Clocks leap, and processes are stopped, more than once.
TEST_F(ServerMemory, AnAnswerOutlastsTwoLongAbsencesInARow) {
    answer_by_size(kAnswerBytes);
    const SessionId session = connect();
    run(milliseconds(5));
    server.port.fate = [](std::uint64_t) { return 0; };
    ask(session, 1);
    run(milliseconds(2));
    EXPECT_EQ(executed.at(1), 1U);
    for (int leaps = 0; leaps < 2; ++leaps) {
        now = now + kPeerTimeout * 3;
        run(milliseconds(20));
    }
    server.port.fate = [](std::uint64_t) { return 1; };
    run(milliseconds(300));
    EXPECT_EQ(results.at(1), CallStatus::Ok);
    EXPECT_EQ(drops(Drop::AnswerForgotten), 0U);
    run(kPeerTimeout * 2 + milliseconds(300));
    EXPECT_EQ(server.pool->live(), 0U);
}

}  // namespace
}  // namespace cairn::erpc
