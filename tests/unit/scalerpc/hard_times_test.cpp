// Losses, pauses, lazy and dead peers.
#include <fmt/format.h>

#include <optional>
#include <random>
#include <string>

#include "tests/unit/scalerpc/many_clients.hpp"

namespace cairn::scalerpc {
namespace {

class ScalerpcHardTimes : public ManyClients {
protected:
    ~ScalerpcHardTimes() override {  // while there is a random generator for their last frames
        client.reset();
        server.reset();
    }
    void post_all() {
        for (std::size_t i = 0; i < sessions.size(); ++i) {
            post(i);
            post(i, 200);
        }
    }

    void ask_for_long_ones(bool grouping) {
        EndpointConfig config = small(32);
        config.shape = {1024, 4};
        config.features.grouping = grouping;
        begin(config, 32);
        for (std::size_t session = 0; session != 32; ++session) {
            for (int i = 0; i < 4; ++i) {
                post(session, 900);
            }
        }
        run(milliseconds(20));
        EXPECT_EQ(count(CallStatus::Ok), 128U);
        EXPECT_EQ(counted().answers_given_up, 0U);
        check();
    }

    std::mt19937 random{7};
};

TEST_F(ScalerpcHardTimes, LossesAndCopiesCostTimeOnly) {
    begin(small(64), 30);
    for (Host* host : {client.get(), server.get()}) {
        host->port.fate = [this](std::uint64_t) {
            const auto die = random() % 100;
            return die < 3 ? 0 : die < 5 ? 2 : 1;
        };
    }
    again = true;
    post_all();
    run(milliseconds(150));
    again = false;
    run(milliseconds(300));
    EXPECT_EQ(client->endpoint->calls_pending(), 0U);
    EXPECT_EQ(count(CallStatus::Ok), results.size());
    EXPECT_GT(results.size(), 1000U);
    EXPECT_GT(counted().switches, 50U);
    const std::string listed = server->worker->counters().json();
    EXPECT_NE(listed.find(fmt::format(R"("scalerpc_switches":{},)", std::uint64_t{counted().switches})),
              std::string::npos)
        << listed;
    check();
}

// A client that pauses does not delay the others, and is served again.
TEST_F(ScalerpcHardTimes, APauseOfTheClientsEndsNothing) {
    begin(small(64), 30);
    again = true;
    post_all();
    run(milliseconds(5));
    for (const Instant end = now + milliseconds(130); now < end; now = now + microseconds(5)) {
        server->turn(now);
    }
    EXPECT_GT(counted().keys_ended, 0U) << "longer than a notice waits";
    again = false;
    run(milliseconds(200));
    EXPECT_EQ(client->endpoint->calls_pending(), 0U);
    EXPECT_EQ(server->endpoint->sessions_open() + counted().links.peers_lost, 30U);
    EXPECT_GT(server->endpoint->sessions_open(), 20U) << "who wrote nothing more has kept its connection";
    check();
}

// Earlier messages of the clients are read first.
TEST_F(ScalerpcHardTimes, APauseOfTheServerBlamesNobody) {
    begin(small(64), 30);
    again = true;
    post_all();
    for (int i = 0; i < 20; ++i) {
        run(milliseconds(3));
        now = now + milliseconds(120);
        server->turn(now);
        client->turn(now);
    }
    EXPECT_EQ(counted().keys_ended, 0U);
    EXPECT_EQ(server->endpoint->sessions_open(), 30U);
    again = false;
    run(milliseconds(200));
    EXPECT_EQ(client->endpoint->calls_pending(), 0U);
    check();
}

TEST_F(ScalerpcHardTimes, AShortPauseCostsNoConnection) {
    begin(small(64), 30);
    again = true;
    post_all();
    run(milliseconds(5));
    for (const Instant end = now + milliseconds(3); now < end; now = now + microseconds(5)) {
        server->turn(now);
    }
    run(milliseconds(20));
    for (const Instant end = now + milliseconds(3); now < end; now = now + microseconds(5)) {
        client->turn(now);
    }
    run(milliseconds(20));
    again = false;
    run(milliseconds(50));
    EXPECT_EQ(client->endpoint->calls_pending(), 0U);
    EXPECT_EQ(count(CallStatus::Ok), results.size());
    EXPECT_EQ(counted().keys_ended, 0U);
    EXPECT_EQ(server->endpoint->sessions_open(), 30U);
    check();
}

// Both ends alternate on one CPU, in intervals longer than slices: a client writes long after it got the permission.
TEST_F(ScalerpcHardTimes, EndsThatTakeTurnsOnOneCpuGoOn) {
    for (const bool warmup : {true, false}) {
        sessions.clear();
        results.clear();
        EndpointConfig config = small(64);
        config.features.warmup = warmup;
        begin(config, 30);
        again = true;
        post_all();
        for (int i = 0; i < 50; ++i) {
            for (Host* const host : {client.get(), server.get()}) {
                for (const Instant end = now + milliseconds(4); now < end; now = now + microseconds(5)) {
                    host->turn(now);
                }
            }
        }
        again = false;
        EXPECT_GT(count(CallStatus::Ok), 300U) << (warmup ? "with" : "without") << " warmup";
        run(milliseconds(100));
        EXPECT_EQ(client->endpoint->calls_pending(), 0U);
        EXPECT_EQ(count(CallStatus::Ok), results.size());
        EXPECT_EQ(server->endpoint->sessions_open(), 30U);
        check();
        again = true;
        post_all();
        run(milliseconds(50));
        const std::uint64_t before = counted().switches;
        run(milliseconds(20));
        EXPECT_GT(counted().switches - before, 50U) << "slices are short again";
        again = false;
        run(milliseconds(100));
    }
}

TEST_F(ScalerpcHardTimes, DeadClientsAreNoticedAndTheirPlacesAreFree) {
    EndpointConfig config = small(32);
    config.peer_timeout = milliseconds(100);
    begin(config, 30);
    again = true;
    post_all();
    run(milliseconds(5));
    for (const Instant end = now + milliseconds(101); now < end; now = now + microseconds(20)) {
        server->turn(now);
    }
    EXPECT_EQ(counted().links.peers_lost, 30U);
    EXPECT_EQ(server->endpoint->slices().groups().size(), 0U);
    EXPECT_EQ(server->endpoint->slices().pools().tenants(0).size(), 0U);
    EXPECT_EQ(server->endpoint->slices().pools().tenants(1).size(), 0U);
    again = false;
    run(milliseconds(400));
    EXPECT_EQ(client->endpoint->calls_pending(), 0U) << "the calls of those that were given up have ended";
}

// The connections of dead peers wait for a message that never comes.
TEST_F(ScalerpcHardTimes, SessionsOfDeadClientsAreForOthers) {
    EndpointConfig config = small(20);
    config.peer_timeout = milliseconds(100);
    begin(config, 20);
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        post(i, 32, kKeep);
    }
    run(milliseconds(5));
    for (const Instant end = now + milliseconds(400); now < end; now = now + microseconds(20)) {
        server->turn(now);
    }
    ASSERT_EQ(counted().links.peers_lost, 20U);
    Host other("10.0.0.3", 33, config);
    other.port.join(server->port);
    server->port.join(other.port);
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        ASSERT_TRUE(other.endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), kService, now).ok());
    }
    for (const Instant end = now + milliseconds(5); now < end; now = now + microseconds(5)) {
        other.turn(now);
        server->turn(now);
    }
    EXPECT_EQ(other.events, std::vector<rpc::LinkEvent>(20, rpc::LinkEvent::Connected));
    EXPECT_EQ(counted().links.displaced, 0U);
    for (const RequestHandle& handle : kept) {
        EXPECT_FALSE(server->endpoint->answer(handle, {}, now)) << "another has its session";
    }
}

TEST_F(ScalerpcHardTimes, CallsOfADeadServerFail) {
    EndpointConfig config = small(32);
    config.peer_timeout = milliseconds(100);
    begin(config, 20);
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        post(i, 32, kKeep);
    }
    run(milliseconds(5));
    for (const Instant end = now + milliseconds(101); now < end; now = now + microseconds(20)) {
        client->turn(now);
    }
    EXPECT_EQ(count(CallStatus::PeerLost), 20U);
}

TEST_F(ScalerpcHardTimes, NothingIsLeftWhenBothHaveEnded) {
    begin(small(64), 30);
    again = true;
    post_all();
    run(milliseconds(3));
    again = false;
    for (const SessionId session : sessions) {
        client->endpoint->disconnect(session, now);
    }
    run(milliseconds(300));
    EXPECT_EQ(server->endpoint->sessions_open(), 0U);
    EXPECT_EQ(client->endpoint->sessions_open(), 0U);
    EXPECT_EQ(server->endpoint->server().requests_kept(), 0U);
    check();
    client->endpoint.reset();
    server->endpoint.reset();
    EXPECT_EQ(client->pool.live(), 0U);
    EXPECT_EQ(server->pool.live(), 0U);
}

// A client that finds no place in the server's backlog asks again half a second later.
TEST_F(ScalerpcHardTimes, AllClientsMayConnectAtOnce) {
    begin(small(150), 0);
    for (int i = 0; i < 150; ++i) {
        ASSERT_TRUE(client->endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), kService, now).ok());
    }
    run(milliseconds(20));
    EXPECT_EQ(client->events, std::vector<SessionEvent>(150, SessionEvent::Connected));
}

TEST_F(ScalerpcHardTimes, ThereIsMemoryForAllLongAnswersThatClientsWaitFor) {
    ask_for_long_ones(true);
}

TEST_F(ScalerpcHardTimes, ThereIsMemoryForAllLongAnswersWithoutGroups) {
    ask_for_long_ones(false);
}

// Answers too long for the send queue lie in lent memory. If there is none, the caller gets an error.
TEST_F(ScalerpcHardTimes, LongAnswersWaitForTheirMemory) {
    EndpointConfig config = small(16);
    config.shape = {2048, 8};
    config.long_answers = 4;
    begin(config, 2);
    for (int i = 0; i < 8; ++i) {
        post(0, 1500);
        post(1, 1500);
    }
    run(milliseconds(5));
    EXPECT_EQ(count(CallStatus::Ok) + count(CallStatus::AnswerLost), 16U);
    EXPECT_GE(count(CallStatus::Ok), 4U);
    EXPECT_EQ(counted().answers_given_up, count(CallStatus::AnswerLost));
    const std::size_t before = count(CallStatus::Ok);
    post(0, 1500);
    run(milliseconds(2));
    EXPECT_EQ(count(CallStatus::Ok), before + 1) << "the memory is back";
    check();
}

// A call that its caller has given up is not executed, unless it had left by then.
TEST_F(ScalerpcHardTimes, CallsThatEndBeforeTheirRequestsLeaveAreNotExecuted) {
    begin(small(16), 2);
    const std::uint64_t tag = ++tags;
    std::vector<std::uint8_t> bytes(32);
    std::memcpy(bytes.data(), &tag, sizeof(tag));
    Call call;
    call.type = kEcho;
    call.request = bytes;
    std::optional<CallStatus> ended;
    call.context = &ended;
    call.deadline = now + milliseconds(1);
    call.completion = [](void* context, const rpc::CallResult& result) {
        *static_cast<std::optional<CallStatus>*>(context) = result.status;
    };
    ASSERT_EQ(client->endpoint->post(sessions[0], call, now).verdict, PostVerdict::Posted);
    for (const Instant end = now + milliseconds(10); now < end; now = now + microseconds(20)) {
        client->turn(now);  // the server gets no messages meanwhile
    }
    EXPECT_EQ(ended, CallStatus::DeadlinePassed);
    run(milliseconds(5));
    EXPECT_EQ(counted().requests_expired, 1U);
    EXPECT_EQ(counted().requests_handled, 0U);
    post(0);
    run(milliseconds(5));
    EXPECT_EQ(count(CallStatus::Ok), 1U);
    check();
}

// The server dies between the connection's establishment and its welcome, so the client has got nothing from it.
TEST_F(ScalerpcHardTimes, AServerThatDiesBeforeItsWelcomeIsNoticed) {
    EndpointConfig config = small(4);
    config.peer_timeout = milliseconds(100);
    begin(config, 0);
    const auto session = client->endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), kService, now);
    ASSERT_TRUE(session.ok());
    sessions.push_back(session.value());
    post(0);
    while (client->events.empty()) {
        client->turn(now);
        if (client->events.empty()) {
            server->turn(now);
        }
        now = now + microseconds(5);
    }
    ASSERT_EQ(client->events.back(), rpc::LinkEvent::Connected);
    ASSERT_TRUE(results.empty());
    for (const Instant end = now + milliseconds(400); now < end; now = now + microseconds(20)) {
        client->turn(now);
    }
    EXPECT_EQ(client->events.back(), rpc::LinkEvent::PeerLost);
    EXPECT_EQ(count(CallStatus::PeerLost), 1U);
    EXPECT_EQ(client->endpoint->calls_pending(), 0U);
}

}  // namespace
}  // namespace cairn::scalerpc
