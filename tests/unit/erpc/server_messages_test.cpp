// The parts of requests that a server keeps: the limits of each session, and the parts that are dropped.
#include "rpc/erpc/server_messages.hpp"

#include <gtest/gtest.h>

#include "tests/unit/erpc/server_memory.hpp"

namespace cairn::erpc {
namespace {

constexpr std::uint32_t kFillsThePool = 900'000;

TEST_F(ServerMemory, ARequestThatFindsNoMemoryEndsTheOneBeforeItInItsSlotAndNothingElse) {
    open_session();
    forge(0, 1, 5'000, 0);
    forge(1, 1, 5'000, 0);
    forge(0, 2, kFillsThePool, 0);
    forge(0, 1, 5'000, 1);
    forge(0, 2, kFillsThePool, 1);
    forge(1, 1, 5'000, 1);
    server.turn(now);
    EXPECT_GT(drops(Drop::NoBuffer) + drops(Drop::ShareTaken), 0U);
    EXPECT_EQ(server.pool->live(), 2U);  // the answer, and the part of a request in slot 1
    post(connect(), 2, Instant::never(), 5'000);
    run(milliseconds(5));
    EXPECT_EQ(results.at(2), CallStatus::Ok);
}

TEST_F(ServerMemory, ARequestForWhichThereIsNeverMemoryIsRefused) {
    const SessionId session = connect();
    post(session, 1, Instant::never(), 2'000'000);
    post(session, 2, Instant::never(), 5'000);
    run(milliseconds(20));
    EXPECT_EQ(results.at(1), CallStatus::RequestTooLong);
    EXPECT_EQ(results.at(2), CallStatus::Ok);
}

TEST_F(ServerMemory, AnAnnouncementTakesNoneUntilAPacketOfItHasComeAsItShould) {
    open_session();
    const std::uint64_t before = server.pool->live();
    forge(0, 1, 500'000, 0, 0);
    forge(1, 1, 500'000, 0, kPacketBytes - 1);
    forge(2, 1, 500'000, 400, kPacketBytes);  // too far from the beginning to be held
    forge(3, 1, 5'000, 5, 8);                 // there is no such packet
    server.turn(now);
    EXPECT_EQ(server.pool->live(), before);
    EXPECT_EQ(drops(Drop::BadSize), 3U);
    EXPECT_EQ(drops(Drop::OutOfOrder), 1U);
}

TEST_F(ServerMemory, OneSessionsHalfSentRequestsLeaveRoomForOthers) {
    open_session();
    for (std::uint32_t slot = 0; slot < kSlotsPerSession; ++slot) {
        forge(slot, 1, 100'000, 0);
    }
    post(connect(), 2, Instant::never(), 100'000);
    run(milliseconds(10));
    EXPECT_EQ(drops(Drop::ShareTaken), kSlotsPerSession - 2U);
    EXPECT_EQ(results.at(2), CallStatus::Ok);
}

TEST_F(ServerMemory, OneHostsHalfSentRequestsLeaveRoomForOthers) {
    for (int i = 0; i < 6; ++i) {
        open_session();
        forge(0, 1, 100'000, 0);
        server.turn(now);
    }
    EXPECT_EQ(drops(Drop::ShareTaken), 2U);
    Host other("10.0.0.3", 33);
    const SessionId session = connect_third(other);
    std::vector<std::uint8_t> request(100'000);
    CallStatus status = CallStatus::Cancelled;
    other.endpoint->post(session, call_with(request, status), now);
    for (const Instant end = now + milliseconds(20); now < end; now = now + microseconds(50)) {
        other.turn(now);
        server.turn(now);
    }
    EXPECT_EQ(status, CallStatus::Ok);
}

TEST_F(ServerMemory, HalfReceivedRequestsOfIdleSlotsAreGivenUp) {
    const SessionId session = connect();
    post(session, 1);
    run(milliseconds(5));
    const std::uint64_t before = server.pool->live();
    client.port.fate = [few = client.port.sent() + 2](std::uint64_t number) { return number < few ? 1 : 0; };
    post(session, 2, now + milliseconds(3), 20'000);
    run(milliseconds(10));
    EXPECT_EQ(results.at(2), CallStatus::DeadlinePassed);
    EXPECT_GT(server.pool->live(), before);
    client.port.fate = [](std::uint64_t) { return 1; };
    run(milliseconds(1'300));
    EXPECT_EQ(server.pool->live(), before);
    EXPECT_EQ(drops(Drop::RequestGivenUp), 1U);
}

TEST_F(ServerMemory, TheCallOfARequestThatWasGivenUpBeginsAnewAndIsExecutedOnce) {
    const SessionId session = connect();
    run(milliseconds(5));
    client.port.fate = [few = client.port.sent() + 3](std::uint64_t number) { return number < few ? 1 : 0; };
    post(session, 2, Instant::never(), 20'000);
    run(milliseconds(1'400));
    EXPECT_EQ(drops(Drop::RequestGivenUp), 1U);
    client.port.fate = [](std::uint64_t) { return 1; };
    run(milliseconds(500));
    expect_all(1, CallStatus::Ok);
    expect_each_executed_at_most_once();
    EXPECT_EQ(client.endpoint->statistics().calls_restarted, 1U);
}

TEST_F(ServerMemory, WhenItIsWantedHalfReceivedRequestsOfSilentSessionsMakeRoomSoon) {
    server.config.transfers_max = 2;
    server.restart(22);
    server.endpoint->set_handler(kEcho, &TwoHosts::echo, this);
    open_session();
    forge(0, 1, 5'000, 0);
    server.turn(now);
    open_session();
    forge(0, 1, 5'000, 0);
    server.turn(now);
    run(milliseconds(10));
    post(connect(), 9, Instant::never(), 5'000);
    run(milliseconds(200));
    EXPECT_EQ(results.at(9), CallStatus::Ok);
}

}  // namespace
}  // namespace cairn::erpc
