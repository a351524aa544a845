// Two eRPC endpoints over a wire in memory, in virtual time: the contract of Endpoint under loss, doubling,
// slow handlers, cancellation and peers that die.
#include "rpc/erpc/endpoint.hpp"

#include <gtest/gtest.h>

#include "tests/unit/erpc/two_hosts.hpp"

namespace cairn::erpc {
namespace {

class EndpointTest : public TwoHosts {};

TEST_F(EndpointTest, AConnectThatArrivesTwiceOpensOneSession) {
    client.port.fate = [](std::uint64_t) { return 2; };
    connect();
    run(milliseconds(5));
    EXPECT_EQ(server.endpoint->sessions_open(), 1U);
    EXPECT_EQ(client.endpoint->sessions_open(), 1U);
}

TEST_F(EndpointTest, CallsPostedBeforeAndBeyondSlotsAndCreditsAllComplete) {
    const SessionId session = connect();
    for (std::uint64_t tag = 0; tag < 100; ++tag) {
        EXPECT_EQ(post(session, tag).verdict, PostVerdict::Posted);
    }
    run(milliseconds(50));
    expect_all(100, CallStatus::Ok);
    expect_each_executed_at_most_once();
    EXPECT_EQ(client.endpoint->statistics().retransmits, 0U);
}

TEST_F(EndpointTest, ItsCountersAreAmongTheWorkersAsLongAsItExists) {
    const SessionId session = connect();
    for (std::uint64_t tag = 0; tag < 3; ++tag) {
        post(session, tag);
    }
    run(milliseconds(5));
    const telemetry::Registry& counters = client.worker->counters();
    EXPECT_NE(counters.json().find(R"("erpc_requests_sent":3,"erpc_responses_received":3,)"), std::string::npos)
        << counters.json();
    EXPECT_NE(counters.json().find(R"("erpc_malformed":0,)"), std::string::npos) << counters.json();
    client.endpoint.reset();
    EXPECT_EQ(counters.json().find("erpc_"), std::string::npos) << counters.json();
    EXPECT_NE(counters.json().find("roce_"), std::string::npos) << counters.json();
}

TEST_F(EndpointTest, LossAndDoublingNeverExecuteTwiceNorLoseACall) {
    client.port.fate = [](std::uint64_t number) { return number % 5 == 2 ? 0 : number % 7 == 3 ? 2 : 1; };
    server.port.fate = [](std::uint64_t number) { return number % 4 == 1 ? 0 : number % 6 == 5 ? 2 : 1; };
    const SessionId session = connect();
    for (std::uint64_t tag = 0; tag < 200; ++tag) {
        post(session, tag);
    }
    run(seconds(3));
    expect_all(200, CallStatus::Ok);
    expect_each_executed_at_most_once();
    EXPECT_GT(client.endpoint->statistics().retransmits, 0U);
    EXPECT_GT(server.endpoint->statistics().responses_resent, 0U);
}

TEST_F(EndpointTest, AHandlerMayAnswerLaterAndRetransmissionsMeanwhileAreDropped) {
    hold = true;
    post(connect(), 1);
    run(milliseconds(20));
    EXPECT_TRUE(results.empty());
    EXPECT_GT(server.endpoint->statistics().of(Drop::DuplicateBusy), 0U);
    answer_held(now);
    run(milliseconds(5));
    expect_all(1, CallStatus::Ok);
    expect_each_executed_at_most_once();
}

TEST_F(EndpointTest, CancelledAndOverdueCallsCompleteOnceAndTheirSlotsServeOn) {
    const SessionId session = connect();
    run(milliseconds(5));
    hold = true;
    const Posted first = post(session, 1);
    post(session, 2, now + milliseconds(3));
    run(milliseconds(10));
    EXPECT_EQ(results.at(2), CallStatus::DeadlinePassed);
    EXPECT_TRUE(client.endpoint->cancel(first.id, now));
    EXPECT_FALSE(client.endpoint->cancel(first.id, now));
    EXPECT_EQ(results.at(1), CallStatus::Cancelled);
    hold = false;
    answer_held(now);
    for (std::uint64_t tag = 10; tag < 40; ++tag) {
        post(session, tag);
    }
    run(milliseconds(100));
    for (std::uint64_t tag = 10; tag < 40; ++tag) {
        EXPECT_EQ(results.at(tag), CallStatus::Ok);
    }
    expect_each_executed_at_most_once();
}

TEST_F(EndpointTest, ADeadPeerFailsPendingCallsWithinTheConfiguredTimeAndLeaksNothing) {
    const SessionId session = connect();
    run(milliseconds(5));
    client.port.fate = [](std::uint64_t) { return 0; };
    for (std::uint64_t tag = 0; tag < 20; ++tag) {
        post(session, tag);
    }
    run(kPeerTimeout + milliseconds(50));
    expect_all(20, CallStatus::PeerLost);
    EXPECT_EQ(client.endpoint->sessions_open(), 0U);
    run(kPeerTimeout * 2);
    EXPECT_EQ(server.endpoint->sessions_open(), 0U);
    EXPECT_EQ(server.pool->live(), 0U);
    client.endpoint.reset();
    client.worker.reset();
    EXPECT_EQ(client.port.buffers_in_use(), 0U);
}

TEST_F(EndpointTest, ALimitOutOfRangeIsRefusedByNameWithTheRange) {
    const auto refused = [this](auto&& change, const char* named, const char* remedy) {
        EndpointConfig config = client.config;
        config.qp.qpn = Qpn{0x777};
        change(config);
        const auto made = Endpoint::create(config, *client.worker, *client.pool);
        EXPECT_FALSE(made.ok()) << named;
        EXPECT_NE(made.error().what.find(named), std::string::npos) << made.error().text();
        EXPECT_NE(made.error().remedy.find(remedy), std::string::npos) << made.error().text();
    };
    refused([](EndpointConfig& config) { config.sessions_max = 0; }, "0 sessions", "1 to");
    refused([](EndpointConfig& config) { config.credits = 0; }, "0 credits", "1 to");
    refused([](EndpointConfig& config) { config.calls_max = rpc::kCallsMax + 1; }, "outstanding calls", "1 to");
    refused([](EndpointConfig& config) { config.max_message_bytes = 0; }, "messages of 0 bytes", "1 to");
    refused([](EndpointConfig& config) { config.transfers_max = 0; }, "0 messages of several packets", "1 to");
    refused([](EndpointConfig& config) { config.peer_timeout = {}; }, "peer timeout of 0 ms", "20 ms or more");
}

TEST_F(EndpointTest, ALeapOfTimeCostsNoSessionAndAPeerThatIsSilentAfterwardsIsGivenUpInTime) {
    const SessionId session = connect();
    run(milliseconds(5));
    now = now + kPeerTimeout * 3;
    run(milliseconds(5));
    now = now + kPeerTimeout / 2;  // the shortest that is not held against the peer
    post(session, 1);
    run(kPeerTimeout * 2);
    expect_all(1, CallStatus::Ok);
    EXPECT_EQ(events, std::vector<SessionEvent>{SessionEvent::Connected});
    now = now + kPeerTimeout * 3;
    client.port.fate = [](std::uint64_t) { return 0; };
    run(kPeerTimeout - milliseconds(50));
    EXPECT_EQ(client.endpoint->sessions_open(), 1U);
    run(milliseconds(100));
    EXPECT_EQ(client.endpoint->sessions_open(), 0U);
    EXPECT_EQ(server.endpoint->sessions_open(), 1U);
    run(kPeerTimeout);
    EXPECT_EQ(server.endpoint->sessions_open(), 0U);
}

TEST_F(EndpointTest, ARestartedPeerResetsTheOldSessionAndTakesANewOne) {
    const SessionId session = connect();
    run(milliseconds(5));
    server.port.fate = [](std::uint64_t) { return 0; };  // as if killed
    server.restart(33);
    server.port.fate = [](std::uint64_t) { return 1; };
    server.endpoint->set_handler(kEcho, &TwoHosts::echo, this);
    post(session, 1);
    run(kPingInterval + milliseconds(20));  // it did not announce its end
    expect_all(1, CallStatus::PeerLost);
    post(connect(), 2);
    run(milliseconds(5));
    EXPECT_EQ(results.at(2), CallStatus::Ok);
}

TEST_F(EndpointTest, APacketOfALargeMessageThatOthersOvertookIsSentAgainOnceAndWithoutWaitingForATimeout) {
    const SessionId session = connect();
    run(milliseconds(5));
    for (Host* const host : {&client, &server}) {
        client.port.fate = server.port.fate = [](std::uint64_t) { return 1; };
        const std::uint64_t lost = host->port.sent() + (host == &client ? 2 : 10);  // in the request; in the response
        host->port.fate = [lost](std::uint64_t number) { return number == lost ? 0 : 1; };
        results.clear();
        const std::uint64_t before = client.endpoint->statistics().retransmits;
        post(session, 1, Instant::never(), 20'000);
        run(kRtoMin - microseconds(500));
        expect_all(1, CallStatus::Ok);
        EXPECT_EQ(client.endpoint->statistics().retransmits - before, 1U);
    }
}

TEST_F(EndpointTest, AnAnswerLongerThanItsClientTakesEndsTheCallAndMessagesBeyondTheWiresSizeAreNotTaken) {
    Host narrow("10.0.0.3", 33, nullptr, 2'000);
    narrow.port.join(server.port);
    server.port.join(narrow.port);
    const SessionId session = narrow.connect(server, now);
    server.endpoint->set_handler(
        kEcho,
        [](void*, const Request& request) {
            EXPECT_EQ(request.endpoint.reserve(request.handle, kMaxMessageBytes + 1).data(), nullptr);
            EXPECT_EQ(request.endpoint.reserve(request.handle, 2'001).size(), 2'001U);
            request.endpoint.respond(request.handle, request.now);
        },
        nullptr);
    Call call;
    call.type = kEcho;
    call.completion = &TwoHosts::completed;
    call.context = this;
    EXPECT_EQ(narrow.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
    const std::vector<std::uint8_t> large(2'001);
    call.request = large;
    EXPECT_EQ(narrow.endpoint->post(session, call, now).verdict, PostVerdict::TooLong);
    const std::vector<std::uint8_t> largest(std::size_t{kMaxMessageBytes} + 1);
    call.request = largest;
    EXPECT_EQ(client.endpoint->post(connect(), call, now).verdict, PostVerdict::TooLong);
    for (int i = 0; i < 100; ++i, now = now + microseconds(50)) {
        narrow.turn(now);
        server.turn(now);
    }
    expect_all(1, CallStatus::ResponseTooLong);
    EXPECT_EQ(narrow.pool->live(), 0U);
}

TEST_F(EndpointTest, DisconnectFreesTheSessionsOfBothEnds) {
    std::vector<SessionId> sessions;
    sessions.reserve(16);
    for (int i = 0; i < 16; ++i) {
        sessions.push_back(connect());
    }
    run(milliseconds(5));
    EXPECT_EQ(server.endpoint->sessions_open(), 16U);
    for (const SessionId session : sessions) {
        client.endpoint->disconnect(session, now);
    }
    run(milliseconds(5));
    EXPECT_EQ(server.endpoint->sessions_open(), 0U);
    EXPECT_EQ(client.endpoint->sessions_open(), 0U);
    EXPECT_EQ(events.size(), 32U);
}

}  // namespace
}  // namespace cairn::erpc
