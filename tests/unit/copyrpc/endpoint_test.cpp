// An endpoint under difficulties: losses, small rings, full queues, silent and dead peers, refusals.
#include "rpc/copyrpc/endpoint.hpp"

#include <random>

#include "tests/unit/copyrpc/two_hosts.hpp"

namespace cairn::copyrpc {
namespace {

EndpointConfig small_endpoint() {
    EndpointConfig config = small_config(400);
    config.peer_timeout = milliseconds(200);
    return config;
}

class CopyrpcEndpoint : public TwoHosts {
protected:
    CopyrpcEndpoint() : TwoHosts(small_endpoint()) {}
};

TEST_F(CopyrpcEndpoint, SmallRingsCarryManyCallsOfAnySize) {
    const SessionId session = connect();
    std::mt19937 random(1);
    for (std::uint64_t tag = 1; tag <= 3000; ++tag) {
        ASSERT_EQ(post(session, tag, random() % 401).verdict, PostVerdict::Posted);
    }
    run(milliseconds(200));
    EXPECT_EQ(count(CallStatus::Ok), 3000U);
    EXPECT_EQ(client.endpoint->calls_pending(), 0U);
    EXPECT_EQ(server.endpoint->requests_kept(), 0U);
}

TEST_F(CopyrpcEndpoint, ARequestThatIsKeptStopsNobody) {
    const SessionId session = connect();
    ASSERT_EQ(post(session, 1, 300, kKeep).verdict, PostVerdict::Posted);
    for (std::uint64_t tag = 2; tag < 1000; ++tag) {
        ASSERT_EQ(post(session, tag, 100).verdict, PostVerdict::Posted);
    }
    run(milliseconds(100));
    EXPECT_EQ(count(CallStatus::Ok), 998U);
    EXPECT_EQ(server.endpoint->requests_kept(), 1U);
    empty_answers = true;
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_TRUE(server.endpoint->respond(kept[0], now));
    EXPECT_FALSE(server.endpoint->retain(kept[0]));
    run(milliseconds(1));
    EXPECT_EQ(count(CallStatus::Ok), 999U);
}

TEST_F(CopyrpcEndpoint, NothingIsWrittenToARequestThatIsRetained) {
    const SessionId session = connect();
    empty_answers = retains = true;
    (void)post(session, 1, 300, kKeep);
    for (std::uint64_t tag = 2; tag < 100; ++tag) {
        ASSERT_EQ(post(session, tag, 100).verdict, PostVerdict::Posted);
    }
    run(milliseconds(20));
    EXPECT_LT(count(CallStatus::Ok), 50U) << "the ring is used up";
    ASSERT_EQ(payloads.size(), 1U);
    EXPECT_TRUE(std::equal(payloads[0].begin(), payloads[0].end(), requests[1].begin(), requests[1].end()));
    EXPECT_TRUE(server.endpoint->respond(kept[0], now));
    run(milliseconds(20));
    EXPECT_EQ(count(CallStatus::Ok), 99U);
}

TEST_F(CopyrpcEndpoint, RequestsThatAreRetainedStayAsTheyAreWhileOthersComeAndGo) {
    const SessionId session = connect();
    std::mt19937 random(2);
    std::vector<std::vector<std::uint8_t>> copies;
    std::uint64_t tag = 0;
    empty_answers = retains = true;
    for (int round = 0; round < 400; ++round) {
        for (int i = 0; i < 4; ++i) {
            ++tag;
            ASSERT_EQ(post(session, tag, random() % 300, random() % 3 == 0 ? kKeep : kEcho).verdict,
                      PostVerdict::Posted);
        }
        run(microseconds(100));
        for (std::size_t i = copies.size(); i < kept.size(); ++i) {
            copies.emplace_back(payloads[i].begin(), payloads[i].end());
        }
        for (std::size_t i = 0; i < kept.size(); ++i) {
            ASSERT_TRUE(std::equal(copies[i].begin(), copies[i].end(), payloads[i].begin(), payloads[i].end()));
        }
        while (!kept.empty() && random() % 3 != 0) {
            const auto which = static_cast<std::ptrdiff_t>(random() % kept.size());
            EXPECT_TRUE(server.endpoint->respond(kept[static_cast<std::size_t>(which)], now));
            kept.erase(kept.begin() + which);
            copies.erase(copies.begin() + which);
            payloads.erase(payloads.begin() + which);
        }
    }
    for (int i = 0; i < 200; ++i) {
        while (!kept.empty()) {
            EXPECT_TRUE(server.endpoint->respond(kept.back(), now));
            kept.pop_back();
        }
        run(milliseconds(1));
    }
    EXPECT_EQ(count(CallStatus::Ok), tag);
}

TEST_F(CopyrpcEndpoint, CallsSurviveLosses) {
    const SessionId session = connect();
    std::mt19937 random(3);
    for (Host* host : {&client, &server}) {
        host->port.fate = [&random](std::uint64_t) { return static_cast<int>(random() % 20 == 0 ? 0 : 1); };
    }
    for (std::uint64_t tag = 1; tag <= 500; ++tag) {
        ASSERT_EQ(post(session, tag, tag % 400).verdict, PostVerdict::Posted);
    }
    run(seconds(1), microseconds(100));
    EXPECT_EQ(count(CallStatus::Ok), 500U);
}

TEST_F(CopyrpcEndpoint, ManySmallCallsOfATurnAreOneBatch) {
    const SessionId session = connect();
    const std::uint64_t before = client.endpoint->statistics().batches_sent;
    for (std::uint64_t tag = 1; tag <= 2; ++tag) {
        (void)post(session, tag);
    }
    run(milliseconds(1));
    EXPECT_EQ(count(CallStatus::Ok), 2U);
    EXPECT_EQ(client.endpoint->statistics().batches_sent, before + 1);
}

TEST_F(CopyrpcEndpoint, AnIdleSessionSendsNoBatches) {
    connect();
    const std::uint64_t before =
        client.endpoint->statistics().batches_sent + server.endpoint->statistics().batches_sent;
    run(milliseconds(500));
    EXPECT_EQ(client.endpoint->statistics().batches_sent + server.endpoint->statistics().batches_sent, before);
    EXPECT_EQ(client.endpoint->sessions_open(), 1U) << "its peer is there";
}

TEST_F(CopyrpcEndpoint, APeerThatOwesAnAnswerAndDiesIsNoticed) {
    const SessionId session = connect();
    (void)post(session, 1, 32, kKeep);
    run(milliseconds(300));
    EXPECT_TRUE(results.empty()) << "it lives, and is slow";
    for (Host* host : {&client, &server}) {
        host->port.fate = [](std::uint64_t) { return 0; };
    }
    run(milliseconds(100));
    EXPECT_TRUE(results.empty());
    run(milliseconds(101));
    EXPECT_EQ(results.at(1), CallStatus::PeerLost) << "within peer_timeout";
    EXPECT_EQ(client.events.back(), SessionEvent::PeerLost);
    EXPECT_EQ(post(session, 2).verdict, PostVerdict::NoSuchSession);
    EXPECT_FALSE(server.endpoint->respond(kept.at(0), now)) << "the server has noticed, too";
}

TEST_F(CopyrpcEndpoint, WhoPausesItselfLosesNobody) {
    const SessionId session = connect();
    (void)post(session, 1, 32, kKeep);
    run(milliseconds(50));
    now = now + seconds(20);
    run(milliseconds(300));
    EXPECT_TRUE(results.empty());
    EXPECT_TRUE(server.endpoint->respond(kept.at(0), now));
    empty_answers = true;
    run(milliseconds(1));
    EXPECT_EQ(results.at(1), CallStatus::Ok);
}

TEST_F(CopyrpcEndpoint, ACallThatWouldNeverFitIsRefusedAtOnceOrOnceThatIsKnown) {
    const auto session = client.endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), kService, now);
    ASSERT_TRUE(session.ok());
    EXPECT_EQ(post(session.value(), 1, 600).verdict, PostVerdict::Posted) << "the peer's ring is not known yet";
    EXPECT_EQ(post(session.value(), 2, 2U << 20U).verdict, PostVerdict::TooLong) << "no ring is so long";
    run(milliseconds(5));
    EXPECT_EQ(results.at(1), CallStatus::RequestTooLong);
    EXPECT_EQ(post(session.value(), 3, 600).verdict, PostVerdict::TooLong);
    EXPECT_EQ(post(session.value(), 4, 500).verdict, PostVerdict::Posted);
}

TEST_F(CopyrpcEndpoint, AnAnswerLongerThanItsCallersRoomEndsTheCall) {
    const SessionId session = connect();
    const std::uint32_t most = Message::answer_max(Message::charge_for(400));
    const std::vector<std::uint8_t> longer(most + 1);
    empty_answers = true;
    for (std::uint64_t tag = 1; tag <= 3; ++tag) {
        (void)post(session, tag, 32, kKeep);
        run(milliseconds(1));
    }
    ASSERT_EQ(kept.size(), 2U) << "there is room for two answers";
    EXPECT_TRUE(server.endpoint->answer(kept[0], longer, now));
    EXPECT_EQ(server.endpoint->reserve(kept[1], most + 1).size(), most + 1);
    EXPECT_TRUE(server.endpoint->respond(kept[1], now));
    run(milliseconds(1));
    ASSERT_EQ(kept.size(), 3U);
    EXPECT_TRUE(server.endpoint->answer(kept[2], std::span(longer).first(most), now));
    run(milliseconds(1));
    EXPECT_EQ(results.at(1), CallStatus::ResponseTooLong);
    EXPECT_EQ(results.at(2), CallStatus::ResponseTooLong);
    EXPECT_EQ(results.at(3), CallStatus::Ok);
    EXPECT_TRUE(server.endpoint->reserve(kept[2], 1).empty());
}

TEST_F(CopyrpcEndpoint, BothEndsCallEachOtherOverOneSession) {
    const SessionId session = connect();
    for (std::uint64_t tag = 1; tag <= 200; ++tag) {
        (void)post(session, tag, 100);
    }
    int answered = 0;
    const std::vector<std::uint8_t> question(80);
    Call call;
    call.type = kEcho;
    call.request = question;
    call.context = &answered;
    call.completion = [](void* context, const rpc::CallResult& result) {
        *static_cast<int*>(context) += result.status == CallStatus::Ok ? 1 : 0;
    };
    for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(server.endpoint->post(SessionId{0}, call, now).verdict, PostVerdict::Posted);
    }
    run(milliseconds(50));
    EXPECT_EQ(count(CallStatus::Ok), 200U);
    EXPECT_EQ(answered, 200);
}

TEST_F(CopyrpcEndpoint, AServerWithoutHandlersOrMemoryTakesNoSessions) {
    Host idle("10.0.0.3", 33, small_endpoint());
    idle.port.join(client.port);
    client.port.join(idle.port);
    ASSERT_TRUE(idle.endpoint->listen(kService).ok());
    const auto session = client.endpoint->connect(net::IpAddress::parse("10.0.0.3").value(), kService, now);
    ASSERT_TRUE(session.ok());
    (void)post(session.value(), 1);
    for (int i = 0; i < 500; ++i, now = now + microseconds(20)) {
        client.turn(now);
        idle.turn(now);
    }
    EXPECT_EQ(results.at(1), CallStatus::Disconnected);
    EXPECT_EQ(client.events.back(), SessionEvent::Refused);
    EXPECT_EQ(idle.endpoint->statistics().links.refused, 1U);
    EXPECT_EQ(idle.endpoint->sessions_open(), 0U);
    run(seconds(9), milliseconds(5));
    EXPECT_EQ(client.endpoint->sessions_open(), 0U);
    EXPECT_EQ(client.pool.live(), 0U);
}

TEST_F(CopyrpcEndpoint, ASessionThatEndsLeavesNothingBehind) {
    const std::uint64_t unused = client.pool.live();
    for (int i = 0; i < 100; ++i) {
        const SessionId session = connect();
        (void)post(session, static_cast<std::uint64_t>(i) + 1, 32, kKeep);
        run(milliseconds(1));
        client.endpoint->disconnect(session, now);
        run(seconds(9), milliseconds(5));
    }
    EXPECT_EQ(count(CallStatus::Disconnected), 100U);
    EXPECT_EQ(client.endpoint->sessions_open(), 0U);
    EXPECT_EQ(server.endpoint->sessions_open(), 0U);
    EXPECT_EQ(client.pool.live(), unused);
    EXPECT_EQ(server.pool.live(), unused);
}

TEST_F(CopyrpcEndpoint, ACompletionMayEndItsSessionWhileAnswersFollow) {
    const SessionId session = connect();
    struct Context {
        Endpoint& endpoint;
        Instant& now;
        SessionId session;
        int completed = 0;
    } context{*client.endpoint, now, session};
    Call call;
    call.type = kEcho;
    call.context = &context;
    call.completion = [](void* given, const rpc::CallResult&) {
        auto& asked = *static_cast<Context*>(given);
        ++asked.completed;
        asked.endpoint.disconnect(asked.session, asked.now);
    };
    ASSERT_EQ(client.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
    ASSERT_EQ(client.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
    run(milliseconds(5));
    EXPECT_EQ(context.completed, 2);
    EXPECT_EQ(client.endpoint->statistics().breaches.of(Breach::UnknownCall), 0U);
    EXPECT_EQ(client.endpoint->statistics().links.peers_lost, 0U);
}

class CopyrpcFewCalls : public TwoHosts {
protected:
    CopyrpcFewCalls() : TwoHosts(config()) {}
    static EndpointConfig config() {
        EndpointConfig config = small_endpoint();
        config.calls_max = 4;
        config.answer_bytes = 20;
        return config;
    }
};

TEST_F(CopyrpcFewCalls, CallsOfASessionThatEndsLeaveTheirNumbersToOthers) {
    const SessionId first = connect();
    for (std::uint64_t tag = 1; tag <= 4; ++tag) {
        ASSERT_EQ(post(first, tag, 8, kKeep).verdict, PostVerdict::Posted);
    }
    EXPECT_EQ(post(first, 5).verdict, PostVerdict::Full);
    run(milliseconds(1));
    client.endpoint->disconnect(first, now);
    const SessionId second = connect();
    for (std::uint64_t tag = 11; tag <= 14; ++tag) {
        ASSERT_EQ(post(second, tag, 8).verdict, PostVerdict::Posted);
    }
    run(milliseconds(1));
    EXPECT_EQ(count(CallStatus::Ok), 4U);
}

TEST_F(CopyrpcFewCalls, CallsThatWaitForANumberGoOnWhenAnotherSessionFreesOne) {
    const SessionId first = connect();
    const SessionId second = connect();
    for (std::uint64_t tag = 1; tag <= 4; ++tag) {
        const CallId id = post(first, tag, 8, kKeep).id;
        run(microseconds(100));
        EXPECT_TRUE(client.endpoint->cancel(id, now));
    }
    ASSERT_EQ(post(second, 5, 8).verdict, PostVerdict::Posted);
    run(milliseconds(1));
    EXPECT_EQ(results.count(5), 0U) << "the cancelled calls have all numbers";
    EXPECT_TRUE(server.endpoint->respond(kept.at(0), now));
    run(milliseconds(1));
    EXPECT_EQ(results.at(5), CallStatus::Ok);
}

TEST_F(CopyrpcEndpoint, ConfigurationsOutOfRangeNameThemselves) {
    const auto refusal = [this](auto&& change) {
        EndpointConfig config = small_endpoint();
        change(config);
        auto made = Endpoint::create(config, *client.device, *client.home, client.pool);
        EXPECT_FALSE(made.ok());
        return made.ok() ? "" : made.error().text();
    };
    EXPECT_NE(refusal([](EndpointConfig& config) { config.ring_bytes = 5000; }).find("5000"), std::string::npos);
    EXPECT_NE(refusal([](EndpointConfig& config) { config.ring_bytes = 2048; }).find("2048"), std::string::npos);
    EXPECT_NE(refusal([](EndpointConfig& config) { config.receives = 3; }).find("3 receive"), std::string::npos);
    EXPECT_NE(refusal([](EndpointConfig& config) { config.sessions_max = 0; }).find("0 sessions"), std::string::npos);
    EXPECT_NE(refusal([](EndpointConfig& config) { config.calls_max = 0; }).find("0 outstanding"), std::string::npos);
    EXPECT_NE(refusal([](EndpointConfig& config) { config.answer_bytes = 4000; }).find("4000"), std::string::npos);
    EXPECT_NE(refusal([](EndpointConfig& config) { config.peer_timeout = milliseconds(1); }).find("1 ms"),
              std::string::npos);
}

}  // namespace
}  // namespace cairn::copyrpc
