// Peers that ask for a connection: which of them an endpoint accepts, their cost, and the memory that they get.
#include "tests/unit/copyrpc/stranger.hpp"

namespace cairn::copyrpc {
namespace {

using CopyrpcAdmission = CopyrpcStranger;

TEST_F(CopyrpcAdmission, AGreetingThatIsNoneIsRefused) {
    RawHello raw = hello();
    raw.ring_log2 = 11;
    ask(raw);
    EXPECT_TRUE(stranger.refused);
    EXPECT_FALSE(stranger.peer.has_value());
    EXPECT_EQ(server.endpoint->statistics().links.refused, 1U);
    EXPECT_EQ(server.endpoint->sessions_open(), 0U);
}

TEST(CopyrpcHello, EachFieldIsJudged) {
    const auto parsed = [](auto&& change) {
        RawHello raw;
        Hello{kRing, 16, 77, Rkey{5}}.emit(raw);
        change(raw);
        return Hello::parse({reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)});
    };
    EXPECT_EQ(parsed([](RawHello&) {}), (Hello{kRing, 16, 77, Rkey{5}}));
    EXPECT_FALSE(parsed([](RawHello& raw) { raw.magic.set(1); }));
    EXPECT_FALSE(parsed([](RawHello& raw) { raw.version = 1; }));
    EXPECT_FALSE(parsed([](RawHello& raw) { raw.ring_log2 = 21; }));
    EXPECT_FALSE(parsed([](RawHello& raw) { raw.ring_log2 = 44; })) << "12 modulo 32";
    EXPECT_FALSE(parsed([](RawHello& raw) { raw.mirror_log2 = 11; }));
    EXPECT_FALSE(parsed([](RawHello& raw) { raw.mirror_log2 = 44; })) << "12 modulo 32";
    EXPECT_FALSE(parsed([](RawHello& raw) { raw.receives.set(3); }));
    EXPECT_FALSE(parsed([](RawHello& raw) { raw.receives.set(4097); }));
    EXPECT_FALSE(Hello::parse({}));
}

TEST_F(CopyrpcAdmission, ARingHasNothingOfItsFormerSession) {
    const SessionId session = connect();
    (void)post(session, 1);
    run_all(milliseconds(1));
    const int executed = static_cast<int>(server.endpoint->statistics().requests_handled);
    client.endpoint->disconnect(session, now);
    for (int i = 0; i < 3000; ++i, now = now + milliseconds(5)) {  // until the session's memory is free
        client.turn(now);
        server.turn(now);
    }
    ASSERT_EQ(server.endpoint->sessions_open(), 0U);
    ask(hello());
    ASSERT_TRUE(stranger.peer.has_value());
    stranger.write(3, 0);  // a batch as long as the earlier one, of which nothing is written
    run_all(milliseconds(5));
    EXPECT_EQ(static_cast<int>(server.endpoint->statistics().requests_handled), executed);
    EXPECT_EQ(breaches(Breach::BadHeader), 1U);
}

// There are more of them than the connector looks at in a turn, so that some of their batches come before Established.
TEST_F(CopyrpcAdmission, BreachesBeforeAConnectionIsEstablishedLeaveNothingBehind) {
    std::vector<std::unique_ptr<Stranger>> many;
    bool speak = true;
    const RawHello raw = hello();
    for (int i = 1; i <= 20; ++i) {
        Stranger& one = *many.emplace_back(std::make_unique<Stranger>(("10.0.1." + std::to_string(i)).c_str()));
        one.port.join(server.port);
        server.port.join(one.port);
        one.port.fate = [&speak](std::uint64_t number) { return number == 0 || (number > 1 && speak) ? 1 : 0; };
        one.ask({reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)}, now);
        for (int turns = 0; turns < 10 && !one.peer; ++turns) {
            one.worker->turn(now);
            server.turn(now);
            one.look();
        }
        ASSERT_TRUE(one.peer.has_value());
        one.worker->turn(now);  // its message that it is ready is lost
    }
    for (const auto& one : many) {
        one->write(0);
        one->worker->turn(now);
    }
    speak = false;
    for (int i = 0; i < 12000; ++i, now = now + milliseconds(10)) {
        server.turn(now);
    }
    EXPECT_EQ(breaches(Breach::BadImmediate), 20U);
    EXPECT_EQ(server.endpoint->sessions_open(), 0U);
}

// They ask in the names of other hosts, so their requests are never followed up.
TEST_F(CopyrpcAdmission, PeersThatOnlyAskTakeOneRingEachAndNobodysPlace) {
    std::vector<std::unique_ptr<Stranger>> many;
    const RawHello raw = hello();
    const int asked = 3 * kSessions;
    for (int i = 1; i <= asked; ++i) {
        Stranger& one = *many.emplace_back(std::make_unique<Stranger>(("10.0.1." + std::to_string(i)).c_str()));
        one.port.join(server.port);
        server.port.join(one.port);
        one.ask({reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)}, now);
        one.worker->turn(now);
        run(microseconds(100));
        EXPECT_EQ(server.pool.live(), static_cast<std::uint64_t>(std::min(i, kSessions)));
    }
    EXPECT_EQ(server.endpoint->sessions_open(), static_cast<std::size_t>(kSessions));
    EXPECT_EQ(server.endpoint->statistics().links.displaced, 2U * kSessions);
    EXPECT_EQ(server.endpoint->statistics().links.refused, 0U);
    const SessionId session = connect();
    (void)post(session, 1);
    run(milliseconds(1));
    EXPECT_EQ(count(CallStatus::Ok), 1U);
    Stranger& latest = *many.back();  // this one does follow up, and still has its place
    for (int i = 0; i < 50; ++i, now = now + microseconds(20)) {
        server.turn(now);
        latest.worker->turn(now);
        latest.look();
    }
    EXPECT_TRUE(latest.peer.has_value());
    EXPECT_EQ(server.pool.live(), static_cast<std::uint64_t>(kSessions) + 2);
}

TEST_F(CopyrpcAdmission, ASessionInUseIsNoStrangersPlace) {
    std::vector<std::unique_ptr<Stranger>> many;
    const RawHello raw = hello();
    for (int i = 1; i <= kSessions + 1; ++i) {
        Stranger& one = *many.emplace_back(std::make_unique<Stranger>(("10.0.1." + std::to_string(i)).c_str()));
        one.port.join(server.port);
        server.port.join(one.port);
        one.ask({reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)}, now);
        for (int turns = 0; turns < 200; ++turns, now = now + microseconds(20)) {
            one.worker->turn(now);
            server.turn(now);
            one.look();
        }
        EXPECT_EQ(one.peer.has_value(), i <= kSessions);
    }
    EXPECT_EQ(server.endpoint->statistics().links.displaced, 0U);
    EXPECT_EQ(server.endpoint->statistics().links.refused, 1U);
}

// Killed peers do not send the last message of their connections.
TEST_F(CopyrpcAdmission, SessionsOfPeersThatWentAreForOthers) {
    std::vector<std::unique_ptr<Stranger>> many;
    const RawHello raw = hello();
    for (int i = 1; i <= kSessions; ++i) {
        Stranger& one = *many.emplace_back(std::make_unique<Stranger>(("10.0.1." + std::to_string(i)).c_str()));
        one.port.join(server.port);
        server.port.join(one.port);
        one.ask({reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)}, now);
        for (int turns = 0; turns < 200 && !one.peer; ++turns, now = now + microseconds(20)) {
            one.worker->turn(now);
            server.turn(now);
            one.look();
        }
        one.worker->turn(now);
        server.turn(now);
        ASSERT_TRUE(one.peer.has_value());
    }
    run(seconds(3), milliseconds(1));
    ASSERT_EQ(server.endpoint->statistics().links.peers_lost, static_cast<std::uint64_t>(kSessions));
    for (int i = 0; i < kSessions; ++i) {
        ASSERT_TRUE(client.endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), kService, now).ok());
    }
    run(milliseconds(20));
    EXPECT_EQ(client.events, std::vector<SessionEvent>(kSessions, SessionEvent::Connected));
    EXPECT_EQ(server.endpoint->statistics().links.displaced, 0U);
}

TEST_F(CopyrpcAdmission, OfARingLargerThanOursAPartIsUsed) {
    RawHello raw = hello();
    raw.ring_log2 = 13;
    raw.mirror_log2 = 12;
    ask(raw);
    ASSERT_TRUE(stranger.peer.has_value());
    EXPECT_EQ(stranger.peer->mirror_bytes, kRing);
    EXPECT_EQ(server.pool.live_bytes(), 2U * kRing);
}

// More calls than a session has room for, if a client has longer rings than its server writes to.
class CopyrpcUnlikeRings : public TwoHosts {
protected:
    CopyrpcUnlikeRings() : TwoHosts(with_ring(512U << 10U), with_ring(64U << 10U)) {}
    static EndpointConfig with_ring(std::uint32_t bytes) {
        EndpointConfig config;
        config.ring_bytes = bytes;
        config.sessions_max = 4;
        config.answer_bytes = 32;
        return config;
    }
};

TEST_F(CopyrpcUnlikeRings, AClientWithLongerRingsThanItsServerTakesIsServed) {
    const SessionId session = connect();
    ASSERT_EQ(client.events, std::vector{SessionEvent::Connected});
    EXPECT_EQ(server.pool.live_bytes(), 2U * (64U << 10U));
    for (std::uint64_t tag = 1; tag <= 2000; ++tag) {
        ASSERT_EQ(post(session, tag, tag % 10 == 0 ? 7000 : 32).verdict, PostVerdict::Posted);
    }
    run(milliseconds(50));
    EXPECT_EQ(count(CallStatus::Ok) + count(CallStatus::ResponseTooLong), 2000U);
    EXPECT_EQ(client.endpoint->statistics().links.peers_lost, 0U);
    std::vector<std::uint8_t> answer(100'000);
    std::size_t ended = 0;
    server.endpoint->set_handler(
        kKeep,
        [](void* self, const Request& request) {
            EXPECT_TRUE(
                request.endpoint.answer(request.handle, *static_cast<std::vector<std::uint8_t>*>(self), request.now));
        },
        &answer);
    std::vector<std::uint8_t> memory(1U << 20U);
    rpc::MsgPool elsewhere{memory};
    rpc::MsgBuffer room = elsewhere.allocate(100'000);
    Call call;
    call.type = kKeep;
    call.response = &room;
    call.context = &ended;
    call.completion = [](void* context, const rpc::CallResult& result) {
        EXPECT_EQ(result.status, CallStatus::Ok);
        ++*static_cast<std::size_t*>(context);
    };
    ASSERT_EQ(client.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
    run(milliseconds(20));
    EXPECT_EQ(ended, 1U) << "what has no room in the part travels by itself";
}

TEST_F(CopyrpcUnlikeRings, AServerWithLongerRingsThanItsClientTakesServes) {
    ASSERT_TRUE(client.endpoint->listen(kService).ok());
    std::size_t ended = 0;
    const auto back = server.endpoint->connect(net::IpAddress::parse("10.0.0.1").value(), kService, now);
    ASSERT_TRUE(back.ok());
    run(milliseconds(5));
    Call call;
    call.type = kEcho;
    call.context = &ended;
    call.completion = [](void* context, const rpc::CallResult& result) {
        EXPECT_EQ(result.status, CallStatus::Ok);
        ++*static_cast<std::size_t*>(context);
    };
    const std::vector<std::uint8_t> request(20, 7);
    call.request = request;
    for (int i = 0; i < 3000; ++i) {
        ASSERT_EQ(server.endpoint->post(back.value(), call, now).verdict, PostVerdict::Posted);
    }
    run(milliseconds(50));
    EXPECT_EQ(ended, 3000U);
}

}  // namespace
}  // namespace cairn::copyrpc
