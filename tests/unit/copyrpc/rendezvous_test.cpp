// Messages that are too long for the rings: lent, READ and WRITTEN by themselves, with disturbances at all times.
#include <random>

#include "tests/unit/copyrpc/two_hosts.hpp"

namespace cairn::copyrpc {
namespace {

constexpr std::uint32_t kLong = 1U << 20U;

EndpointConfig with_long_answers() {
    EndpointConfig config = small_config(kLong + 1);
    config.message_bytes_max = kLongestOfPool;
    config.sessions_max = 4;
    config.peer_timeout = milliseconds(200);
    return config;
}

class CopyrpcRendezvous : public TwoHosts {
protected:
    CopyrpcRendezvous() : TwoHosts(with_long_answers()) {}
    // Checks that nothing of long messages is left.
    void expect_rings_alone() {
        EXPECT_EQ(client.pool.live(), 2 * client.endpoint->sessions_open());
        EXPECT_EQ(server.pool.live(), 2 * server.endpoint->sessions_open());
    }
    std::uint64_t lost() {
        return client.endpoint->statistics().links.peers_lost + server.endpoint->statistics().links.peers_lost;
    }
};

TEST_F(CopyrpcRendezvous, RequestsAndAnswersOfAnyLengthArrive) {
    const SessionId session = connect();
    std::uint64_t tag = 0;
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{100}, std::size_t{433}, std::size_t{600}, std::size_t{5000},
          std::size_t{Transfer::kPieceBytes}, std::size_t{Transfer::kPieceBytes + 1}, std::size_t{kLong},
          std::size_t{kLong + 1}}) {
        ASSERT_EQ(post(session, ++tag, bytes).verdict, PostVerdict::Posted);
        run(milliseconds(20));
        EXPECT_EQ(count(CallStatus::Ok), tag) << bytes;
    }
    const Statistics& counted = server.endpoint->statistics();
    EXPECT_EQ(counted.requests_fetched, 6U);
    EXPECT_EQ(counted.requests_handled, tag);
    EXPECT_GE(counted.answers_written, 6U);
    expect_rings_alone();
}

// An answer that fits goes into the ring, even if it could have been longer.
TEST_F(CopyrpcRendezvous, ShortAnswersTakeTheRing) {
    const SessionId session = connect();
    for (std::uint64_t tag = 1; tag <= 5; ++tag) {
        (void)post(session, tag, 32);
        run(milliseconds(2));
    }
    EXPECT_EQ(count(CallStatus::Ok), 5U);
    EXPECT_EQ(server.endpoint->statistics().answers_written, 0U);
    expect_rings_alone();
}

// Far more messages than the pools hold, in both directions, with packet losses.
TEST_F(CopyrpcRendezvous, MoreThanThereIsMemoryForWaitsItsTurn) {
    const SessionId session = connect();
    std::mt19937 random(5);
    for (Host* host : {&client, &server}) {
        host->port.fate = [&random](std::uint64_t) { return static_cast<int>(random() % 500 == 0 ? 0 : 1); };
    }
    std::vector<std::uint8_t> request(kLong);
    std::size_t back = 0;
    Call call;
    call.type = kEcho;
    call.request = request;
    call.context = &back;
    call.completion = [](void* context, const rpc::CallResult& result) {
        EXPECT_EQ(result.status, CallStatus::Ok);
        ++*static_cast<std::size_t*>(context);
    };
    for (std::uint64_t tag = 1; tag <= 40; ++tag) {
        ASSERT_EQ(post(session, tag, random() % 3 == 0 ? 100 : kLong / 2 + random() % (kLong / 2)).verdict,
                  PostVerdict::Posted);
        ASSERT_EQ(server.endpoint->post(SessionId{0}, call, now).verdict, PostVerdict::Posted);
    }
    for (int i = 0; i < 2000 && (count(CallStatus::Ok) < 40 || back < 40); ++i) {
        run(milliseconds(2), microseconds(50));
        ASSERT_LT(client.pool.live() + server.pool.live(), 40U);
    }
    EXPECT_EQ(count(CallStatus::Ok), 40U);
    EXPECT_EQ(back, 40U);
    EXPECT_EQ(lost(), 0U);
    expect_rings_alone();
}

TEST_F(CopyrpcRendezvous, ACancelledCallLendsUntilItsPeerLetsGo) {
    const SessionId session = connect();
    const Posted call = post(session, 1, kLong, kKeep);
    run(milliseconds(20));
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_TRUE(client.endpoint->cancel(call.id, now));
    EXPECT_EQ(count(CallStatus::Cancelled), 1U);
    requests[1].assign(kLong, 0xee);  // the buffer belongs to the caller again
    run(milliseconds(20));
    EXPECT_EQ(client.pool.live(), 4U) << "rings, the request, the room";
    const std::vector<std::uint8_t> late(kLong, 1);
    EXPECT_TRUE(server.endpoint->answer(kept[0], late, now));
    run(milliseconds(20));
    EXPECT_EQ(client.endpoint->statistics().late_answers, 1U);
    EXPECT_EQ(lost(), 0U);
    expect_rings_alone();
    (void)post(session, 2, kLong);
    run(milliseconds(20));
    EXPECT_EQ(count(CallStatus::Ok), 1U);
}

// At any time of a call: before its READ, during it, and during the WRITE of its answer.
TEST_F(CopyrpcRendezvous, ACallMayBeCancelledAtAnyTime) {
    const SessionId session = connect();
    std::uint64_t tag = 0;
    for (int steps = 0; steps < 60; ++steps) {
        const Posted call = post(session, ++tag, kLong);
        for (int i = 0; i < steps * 4; ++i, now = now + microseconds(2)) {
            client.turn(now);
            server.turn(now);
        }
        (void)client.endpoint->cancel(call.id, now);
        requests[tag].assign(kLong, 0xee);
        run(milliseconds(10));
    }
    EXPECT_EQ(results.size(), tag);
    EXPECT_GT(count(CallStatus::Cancelled), 0U);
    EXPECT_EQ(lost(), 0U);
    expect_rings_alone();
}

TEST_F(CopyrpcRendezvous, ASessionMayEndAtAnyTime) {
    std::uint64_t tag = 0;
    for (int steps = 0; steps < 40; ++steps) {
        const SessionId session = connect();
        (void)post(session, ++tag, kLong);
        for (int i = 0; i < steps * 6; ++i, now = now + microseconds(2)) {
            client.turn(now);
            server.turn(now);
        }
        client.endpoint->disconnect(session, now);
        EXPECT_EQ(results.size(), tag);
        for (int i = 0; i < 4000 && client.endpoint->sessions_open() + server.endpoint->sessions_open() != 0; ++i) {
            run(milliseconds(5), milliseconds(5));
        }
        ASSERT_EQ(client.endpoint->sessions_open(), 0U);
        expect_rings_alone();
    }
    EXPECT_EQ(server.endpoint->statistics().breaches.of(Breach::BadPlace), 0U) << "that is no crime";
}

TEST_F(CopyrpcRendezvous, AnEndpointMayEndWithLongMessagesUnderWay) {
    const SessionId session = connect();
    (void)post(session, 1, kLong, kKeep);
    (void)post(session, 2, kLong);
    run(microseconds(300));
    server.endpoint.reset();
    client.endpoint.reset();
    EXPECT_EQ(client.pool.live(), 0U);
    EXPECT_EQ(server.pool.live(), 0U);
    EXPECT_TRUE(results.empty()) << "they did not ask to be completed";
}

TEST_F(CopyrpcRendezvous, TheMemoryOfARequestIsFreeWhenItsHandlerReturns) {
    const SessionId session = connect();
    (void)post(session, 1, kLong / 2, kKeep);
    run(milliseconds(20));
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_EQ(server.pool.live(), 2U);
    empty_answers = true;
    EXPECT_TRUE(server.endpoint->respond(kept[0], now));
    retains = true;
    (void)post(session, 2, kLong / 2, kKeep);
    run(milliseconds(20));
    ASSERT_EQ(kept.size(), 2U);
    EXPECT_EQ(server.pool.live(), 3U);
    EXPECT_TRUE(std::equal(payloads[1].begin(), payloads[1].end(), requests[2].begin(), requests[2].end()));
    EXPECT_TRUE(server.endpoint->respond(kept[1], now));
    EXPECT_EQ(server.pool.live(), 2U);
}

TEST_F(CopyrpcRendezvous, WhoHasGivenUpIsNotReadAndNotExecuted) {
    const SessionId session = connect();
    std::vector<rpc::MsgBuffer> all;
    for (rpc::MsgBuffer one = server.pool.allocate(kLong / 4); one.valid(); one = server.pool.allocate(kLong / 4)) {
        all.push_back(one);
    }
    requests[1].resize(kLong);
    Call call;
    call.type = kEcho;
    call.request = requests[1];
    call.context = &results;
    call.tag = 1;
    call.deadline = now + milliseconds(10);
    call.completion = [](void* context, const rpc::CallResult& result) {
        (*static_cast<std::map<std::uint64_t, CallStatus>*>(context))[result.tag] = result.status;
    };
    (void)client.endpoint->post(session, call, now);
    run(milliseconds(20));
    EXPECT_EQ(count(CallStatus::DeadlinePassed), 1U);
    EXPECT_EQ(server.endpoint->statistics().requests_expired, 1U);
    EXPECT_EQ(server.endpoint->statistics().requests_handled, 0U);
    (void)post(session, 2, kLong);
    run(milliseconds(20));
    EXPECT_EQ(results.count(2), 0U) << "it waits for memory";
    for (rpc::MsgBuffer& one : all) {
        server.pool.release(one);
    }
    run(milliseconds(20));
    EXPECT_EQ(count(CallStatus::Ok), 1U);
    expect_rings_alone();
}

TEST_F(CopyrpcRendezvous, AnAnswerWithoutMemoryIsGivenUp) {
    const SessionId session = connect();
    (void)post(session, 1, 32, kKeep);
    run(milliseconds(2));
    ASSERT_EQ(kept.size(), 1U);
    std::vector<rpc::MsgBuffer> all;
    for (rpc::MsgBuffer one = server.pool.allocate(kLong / 4); one.valid(); one = server.pool.allocate(kLong / 4)) {
        all.push_back(one);
    }
    const std::vector<std::uint8_t> answer(kLong);
    EXPECT_TRUE(server.endpoint->answer(kept[0], answer, now));
    run(milliseconds(2));
    EXPECT_EQ(count(CallStatus::AnswerLost), 1U);
    EXPECT_EQ(server.endpoint->statistics().answers_given_up, 1U);
}

// Many short requests whose answers need more than the pool has.
TEST_F(CopyrpcRendezvous, LongAnswersWaitForThoseBeforeThem) {
    const SessionId session = connect();
    server.endpoint->set_handler(
        kKeep + 1,
        [](void*, const Request& request) {
            const std::span<std::uint8_t> answer = request.endpoint.reserve(request.handle, kLong);
            ASSERT_EQ(answer.size(), kLong);
            EXPECT_TRUE(request.endpoint.respond(request.handle, request.now));
        },
        nullptr);
    empty_answers = true;
    for (std::uint64_t tag = 1; tag <= 60; ++tag) {
        ASSERT_EQ(post(session, tag, 32, kKeep + 1).verdict, PostVerdict::Posted);
    }
    for (int i = 0; i < 1000 && results.size() < 60; ++i) {
        run(milliseconds(1));
        ASSERT_LT(server.pool.live(), 8U);
    }
    EXPECT_EQ(count(CallStatus::Ok), 60U);
    expect_rings_alone();
}

TEST_F(CopyrpcRendezvous, TooLongIsWhatNobodyTakes) {
    const SessionId session = connect();
    EXPECT_EQ(post(session, 1, rpc::kMaxMessageBytes + 1).verdict, PostVerdict::TooLong);
    EndpointConfig config = with_long_answers();
    config.message_bytes_max = rpc::kMaxMessageBytes + 1;
    EXPECT_FALSE(Endpoint::create(config, *client.device, *client.home, client.pool).ok());
}

class CopyrpcLongRequests : public TwoHosts {
protected:
    CopyrpcLongRequests() : TwoHosts(with_short_answers()) {}
    static EndpointConfig with_short_answers() {
        EndpointConfig config = with_long_answers();
        config.answer_bytes = 400;
        return config;
    }
};

TEST_F(CopyrpcLongRequests, OneSessionLeavesMemoryToOthers) {
    const SessionId session = connect();
    const SessionId other = connect();
    retains = empty_answers = true;
    for (std::uint64_t tag = 1; tag <= 4; ++tag) {
        (void)post(session, tag, 3 * (kLong / 4), kKeep);
        run(milliseconds(10));
    }
    EXPECT_EQ(kept.size(), 2U) << "an eighth of the pool";
    (void)post(other, 5, kLong, kKeep);
    run(milliseconds(20));
    EXPECT_EQ(kept.size(), 3U);
    for (std::size_t i = 0; i < 5; ++i) {
        ASSERT_LT(i, kept.size());
        EXPECT_TRUE(server.endpoint->respond(kept[i], now));
        run(milliseconds(10));
    }
    EXPECT_EQ(count(CallStatus::Ok), 5U);
}

TEST(CopyrpcTransfers, APeerThatHoldsOneUpIsLostInTheEnd) {
    Session session;
    EXPECT_FALSE(Transfers::is_stuck(session));
    session.transfers = std::make_unique<SessionTransfers>();
    for (int i = 0; i < 100; ++i) {
        EXPECT_FALSE(Transfers::is_stuck(session)) << "nothing is under way";
    }
    session.transfers->reads = 1;
    int looks = 1;
    while (looks < 100 && !Transfers::is_stuck(session)) {
        ++looks;
    }
    EXPECT_EQ(looks, 16);
}

// The server takes 10,000 bytes, but lends no room for answers of this length.
class CopyrpcUnlikeLengths : public TwoHosts {
protected:
    CopyrpcUnlikeLengths() : TwoHosts(with_long_answers(), ten_thousand()) {}
    static EndpointConfig ten_thousand() {
        EndpointConfig config = small_config(400);
        config.message_bytes_max = 10'000;
        return config;
    }
};

TEST_F(CopyrpcUnlikeLengths, TheServerSaysHowLongARequestMayBe) {
    const SessionId session = connect();
    EXPECT_EQ(post(session, 1, 10'001).verdict, PostVerdict::TooLong);
    EXPECT_EQ(post(session, 2, 10'000).verdict, PostVerdict::Posted);
    run(milliseconds(5));
    EXPECT_EQ(count(CallStatus::Ok), 1U);
}

}  // namespace
}  // namespace cairn::copyrpc
