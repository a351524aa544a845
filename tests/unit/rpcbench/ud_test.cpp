// Calls over datagrams: answered calls, and the fate of calls with losses.
#include "tests/unit/rpcbench/ud_hosts.hpp"

namespace cairn::rpcbench {
namespace {

using rpc::CallStatus;

struct UdCalls : UdHosts {};

TEST_F(UdCalls, AreAnsweredWhateverTheirSize) {
    const SessionId session = connect();
    ASSERT_EQ(client.count(UdEvent::Connected), 1U);
    for (const std::size_t bytes : {0U, 1U, 31U, 32U}) {
        EXPECT_EQ(post(session, bytes, bytes).verdict, rpc::PostVerdict::Posted);
    }
    run(milliseconds(1));
    EXPECT_EQ(count(CallStatus::Ok), 4U);
    EXPECT_EQ(post(session, 99, 33).verdict, rpc::PostVerdict::TooLong);
    EXPECT_EQ(server.endpoint->statistics().datagrams_sent, 4U);
}

// There are more calls than the queues have room for.
TEST_F(UdCalls, OfManySessionsAtOnceAllEnd) {
    std::vector<SessionId> sessions;
    for (int i = 0; i < 40; ++i) {
        sessions.push_back(begin());
    }
    run(milliseconds(60));
    ASSERT_EQ(client.count(UdEvent::Connected), sessions.size());
    EXPECT_EQ(server.endpoint->sessions_open(), sessions.size());
    for (std::uint64_t tag = 0; tag < 4000; ++tag) {
        ASSERT_EQ(post(sessions[tag % sessions.size()], tag).verdict, rpc::PostVerdict::Posted);
    }
    run(milliseconds(30));
    EXPECT_EQ(count(CallStatus::Ok), 4000U);
    EXPECT_EQ(executed, 4000U);
}

TEST_F(UdCalls, OverAPortThatTakesFewWaitAndEnd) {
    const SessionId session = connect();
    server.port.most_per_turn = client.port.most_per_turn = 3;
    for (std::uint64_t tag = 0; tag < 2000; ++tag) {
        ASSERT_EQ(post(session, tag).verdict, rpc::PostVerdict::Posted);
    }
    run(milliseconds(80));
    EXPECT_EQ(count(CallStatus::Ok), 2000U);
}

TEST_F(UdCalls, AServerThatAnswersSlowlyLosesNone) {
    const SessionId session = connect();
    server.port.most_per_turn = 2;
    for (std::uint64_t tag = 0; tag < 4000; ++tag) {
        ASSERT_EQ(post(session, tag).verdict, rpc::PostVerdict::Posted);
    }
    run(milliseconds(150));
    EXPECT_EQ(count(CallStatus::Ok), 4000U);
    EXPECT_EQ(server.worker->datagrams().drops().of(roce::Drop::NoReceive), 0U);
}

TEST_F(UdCalls, ACallWhoseDatagramIsLostFailsInTimeAndAlone) {
    const SessionId session = connect();
    const std::uint64_t first = client.port.sent();
    client.port.fate = [first](std::uint64_t number) { return number == first + 1 ? 0 : 1; };
    for (std::uint64_t tag = 0; tag < 3; ++tag) {
        (void)post(session, tag);
    }
    run(milliseconds(1900), milliseconds(1));
    EXPECT_EQ(count(CallStatus::Ok), 2U);
    EXPECT_EQ(results.size(), 2U);
    (void)post(session, 5);  // the peer lives
    run(milliseconds(200), milliseconds(1));
    EXPECT_EQ(count(CallStatus::DeadlinePassed), 1U);
    EXPECT_EQ(count(CallStatus::Ok), 3U);
    EXPECT_EQ(client.count(UdEvent::Ended), 0U);
}

// The only call of its session: the server answers others meanwhile.
TEST_F(UdCalls, ASessionOutlivesItsOnlyCall) {
    const SessionId quiet = connect();
    const SessionId busy = connect();
    const std::uint64_t first = client.port.sent();
    client.port.fate = [first](std::uint64_t number) { return number == first ? 0 : 1; };
    (void)post(quiet, 0);
    for (std::uint64_t tag = 1; tag < 26; ++tag) {
        (void)post(busy, tag);
        run(milliseconds(100), milliseconds(1));
    }
    EXPECT_EQ(count(CallStatus::DeadlinePassed), 1U);
    EXPECT_EQ(count(CallStatus::Ok), 25U);
    EXPECT_EQ(client.count(UdEvent::Ended), 0U);
}

// A datagram that comes twice executes its request twice, since no request is remembered here. Its call ends once.
TEST_F(UdCalls, AnAnswerThatComesTwiceEndsItsCallOnce) {
    const SessionId session = connect();
    server.port.fate = [](std::uint64_t) { return 2; };
    (void)post(session, 1);
    run(milliseconds(1));
    EXPECT_EQ(count(CallStatus::Ok), 1U);
    EXPECT_EQ(client.breaches(UdBreach::UnknownCall), 1U);
}

TEST_F(UdCalls, ADeadlineEndsACall) {
    const SessionId session = connect();
    client.port.fate = [](std::uint64_t) { return 0; };
    rpc::Call call;
    call.type = kEchoed;
    call.deadline = now + milliseconds(30);
    call.context = &results;
    call.completion = [](void* context, const rpc::CallResult& result) {
        auto& ended = *static_cast<std::map<std::uint64_t, CallStatus>*>(context);
        ended[result.tag] = result.status;
    };
    ASSERT_EQ(client.endpoint->post(session, call, now).verdict, rpc::PostVerdict::Posted);
    run(milliseconds(29));
    EXPECT_TRUE(results.empty());
    run(milliseconds(15));
    EXPECT_EQ(count(CallStatus::DeadlinePassed), 1U);
}

TEST_F(UdCalls, WhatNobodyAnswersIsRefused) {
    const SessionId session = connect();
    (void)post(session, 1, 32, kUnknown);
    (void)post(session, 2, 32, kSilent);
    run(milliseconds(1));
    EXPECT_EQ(count(CallStatus::NoHandler), 2U);
}

TEST_F(UdCalls, HandshakesSurviveLosses) {
    const auto every_other = [](std::uint64_t number) { return number % 2 == 0 ? 0 : 1; };  // at one end
    (void)begin();
    run(milliseconds(15));  // the directory's question has been answered
    client.port.fate = every_other;
    server.port.fate = every_other;
    run(milliseconds(400));
    EXPECT_EQ(client.count(UdEvent::Connected), 1U);
    EXPECT_EQ(server.endpoint->sessions_open(), 1U);
}

TEST_F(UdCalls, ASilentServerIsNoticed) {
    const SessionId session = connect();
    client.port.fate = [](std::uint64_t) { return 0; };
    run(seconds(3), milliseconds(1));
    EXPECT_EQ(client.count(UdEvent::Ended), 0U) << "nobody asked it for anything";
    (void)post(session, 1);
    run(seconds(3), milliseconds(1));
    EXPECT_EQ(client.count(UdEvent::Ended), 1U);
    EXPECT_EQ(client.endpoint->statistics().peers_lost, 1U);
    EXPECT_EQ(results.size(), 1U);
    EXPECT_EQ(client.endpoint->calls_pending(), 0U);
}

TEST_F(UdCalls, SessionsThatEndMakeRoom) {
    for (int i = 0; i < 3; ++i) {
        const SessionId session = connect();
        EXPECT_EQ(server.endpoint->sessions_open(), 1U);
        (void)post(session, static_cast<std::uint64_t>(i));
        run(milliseconds(1));
        client.endpoint->disconnect(session, now);
        run(milliseconds(15));
        EXPECT_EQ(server.endpoint->sessions_open() + client.endpoint->sessions_open(), 0U);
        EXPECT_EQ(client.endpoint->post(session, {}, now).verdict, rpc::PostVerdict::NoSuchSession);
    }
    EXPECT_EQ(count(CallStatus::Ok), 3U);
}

struct FewUdSessions : UdHosts {
    static UdConfig few() {
        UdConfig config;
        config.sessions_max = 2;
        return config;
    }
    FewUdSessions() : UdHosts(few()) {}
};

TEST_F(FewUdSessions, OneTooManyIsNotOpenedUnlessAnotherIsSilent) {
    for (int i = 0; i < 3; ++i) {
        (void)begin();
    }
    run(milliseconds(100));
    EXPECT_EQ(client.count(UdEvent::Connected), 2U);
    EXPECT_GT(server.breaches(UdBreach::NoSession), 0U);
    run(milliseconds(2500), milliseconds(1));
    EXPECT_EQ(client.count(UdEvent::Connected), 2U);
    run(milliseconds(6000), milliseconds(1));  // the third was given up; no answer came for the others
    EXPECT_EQ(client.count(UdEvent::Ended), 1U);
    (void)begin();
    run(milliseconds(100));
    EXPECT_EQ(client.count(UdEvent::Connected), 3U);
    EXPECT_EQ(server.endpoint->sessions_open(), 2U);
}

TEST(UdRoads, AMessageLongerThanADatagramIsRefused) {
    UdConfig config;
    config.message_bytes = 5000;
    UdHost host("10.0.0.1", 1, {});
    const auto made = UdEndpoint::create(config, *host.device, *host.home, host.pool);
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().text().find("--req"), std::string::npos);
}

}  // namespace
}  // namespace cairn::rpcbench
