// What a server keeps of requests and answers: who may hold how much, what is given up, and that every call ends
// though memory is short.
#include "rpc/erpc/server_messages.hpp"

#include <gtest/gtest.h>

#include "tests/unit/erpc/two_hosts.hpp"

namespace cairn::erpc {
namespace {

constexpr std::uint32_t kPacketBytes = 1024 - sizeof(RawHeader);
constexpr std::uint32_t kAnswerBytes = 4000;
constexpr std::uint32_t kAnswerTakes = 8192;  // of the pool, with its headers

class ServerMemory : public TwoHosts {
protected:
    // The session that packets are forged for; their numbers follow from one call over it.
    void open_session() {
        forged = connect();
        post(forged, next_tag++);
        run(milliseconds(5));
        at_server = last.session;
        first_number = last.request_number;  // of slot 0
    }
    // What a client can send that follows no rules: packet `packet` of a request in a slot, so many rounds after the
    // slot's first, with a payload of `payload_bytes` or as many as there should be.
    void forge(std::uint32_t slot, std::uint32_t round, std::uint32_t message_bytes, std::uint32_t packet,
               std::uint32_t payload_bytes = kNone) {
        Header header;
        header.request_type = kEcho;
        header.session = at_server;
        header.message_bytes = message_bytes;
        header.packet_number = static_cast<std::uint16_t>(packet);
        header.request_number = first_number + slot + std::uint64_t{round} * kSlotsPerSession;
        if (payload_bytes == kNone) {
            payload_bytes = bytes_of_packet(message_bytes, kPacketBytes, packet);
        }
        client.inject(server, header, std::vector<std::uint8_t>(payload_bytes), now);
    }
    // Answers of one size, for which there is always room when the handler runs.
    void answer_by_size(std::uint32_t bytes) {
        answer_bytes = bytes;
        server.endpoint->set_handler(
            kEcho,
            [](void* context, const Request& request) {
                auto& self = *static_cast<ServerMemory*>(context);
                std::uint64_t tag = 0;
                std::memcpy(&tag, request.payload.data(), sizeof(tag));
                ++self.executed[tag];
                ASSERT_EQ(request.endpoint.reserve(request.handle, self.answer_bytes).size(), self.answer_bytes);
                request.endpoint.respond(request.handle, request.now);
            },
            this, bytes);
    }
    Posted ask(SessionId session, std::uint64_t tag) {
        requests[tag].assign(sizeof(tag), 0);
        std::memcpy(requests[tag].data(), &tag, sizeof(tag));
        Call call;
        call.type = kEcho;
        call.request = requests[tag];
        call.context = this;
        call.tag = tag;
        call.completion = [](void* context, const CallResult& result) {
            static_cast<ServerMemory*>(context)->results[result.tag] = result.status;
        };
        return client.endpoint->post(session, call, now);
    }
    [[nodiscard]] std::uint64_t drops(Drop reason) { return server.endpoint->statistics().of(reason); }

    std::uint64_t next_tag = 1'000;
    SessionId forged{};
    SessionId at_server{};
    std::uint64_t first_number = 0;
    std::uint32_t answer_bytes = 0;
};

constexpr std::uint32_t kFillsThePool = 900'000;

// How it ends is told to `status`; `request` and it outlive the call.
Call call_with(std::span<const std::uint8_t> request, CallStatus& status) {
    Call call;
    call.type = kEcho;
    call.request = request;
    call.context = &status;
    call.completion = [](void* context, const CallResult& result) {
        *static_cast<CallStatus*>(context) = result.status;
    };
    return call;
}

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
    EXPECT_EQ(server.pool->live(), 2U);  // the answer, and what slot 1 has received
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
    other.port.join(server.port);
    server.port.join(other.port);
    const SessionId session = other.connect(server, now);
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

// Each slot asks again at once, so that none of them is ever idle for long.
TEST_F(ServerMemory, SlotsTakeTurnsWithWhatIsTooLittleForAll) {
    constexpr std::uint64_t kCalls = 4'000;
    constexpr std::uint64_t kSessions = 32;
    client.config.sessions_max = server.config.sessions_max = kSessions * 2;  // one host has no more than its share
    client.config.credits = kSlotsPerSession;
    client.config.calls_max = kCalls;
    client.restart(11);
    client.endpoint->set_session_callback(&TwoHosts::on_session, this);
    server.restart(22, std::size_t{kAnswerTakes} * 64);  // for a quarter of the slots
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

// One session has all the memory for answers, and each of its slots asks again as soon as it is answered.
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
    other.port.join(server.port);
    server.port.join(other.port);
    const SessionId session = other.connect(server, now);
    const auto run_both = [&](Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(50)) {
            client.turn(now);
            other.turn(now);
            server.turn(now);
        }
    };
    const SessionId first = connect();
    run_both(milliseconds(5));
    ask(first, 1);
    client.turn(now);
    client.port.fate = server.port.fate = [](std::uint64_t) { return 0; };  // nor does it ask again
    server.turn(now);
    server.port.fate = [](std::uint64_t) { return 1; };
    const std::array<std::uint8_t, 8> request{2};
    CallStatus status = CallStatus::Cancelled;
    other.endpoint->post(session, call_with(request, status), now);
    run_both(milliseconds(700));
    EXPECT_EQ(status, CallStatus::Ok);
    client.port.fate = [](std::uint64_t) { return 1; };
    run_both(milliseconds(300));
    EXPECT_EQ(results.at(1), CallStatus::AnswerLost);
    expect_each_executed_at_most_once();
}

TEST_F(ServerMemory, AnAnswerThatIsAskedForAgainAndAgainGivesWayToOthers) {
    server.restart(22, kAnswerTakes);
    server.endpoint->set_handler(kEcho, &TwoHosts::echo, this);
    open_session();
    answer_by_size(kAnswerBytes);
    Host other("10.0.0.3", 33);
    other.port.join(server.port);
    server.port.join(other.port);
    const SessionId session = other.connect(server, now);
    const std::array<std::uint8_t, 8> request{2};
    CallStatus status = CallStatus::Cancelled;
    for (int turn = 0; turn < 14'000; ++turn, now = now + microseconds(50)) {
        if (turn % 200 == 0) {
            forge(0, 1, 8, 0);  // holds all the memory there is, and asks for its answer each 10 ms
        }
        if (turn == 100) {
            other.endpoint->post(session, call_with(request, status), now);
        }
        client.turn(now);
        other.turn(now);
        server.turn(now);
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

}  // namespace
}  // namespace cairn::erpc
