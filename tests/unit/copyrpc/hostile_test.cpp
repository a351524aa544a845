// Peers of an endpoint that write what they like: their connection closes with a reason, others live on.
#include <random>

#include "tests/unit/copyrpc/two_hosts.hpp"
#include "tests/unit/verbs/verbs_pair.hpp"

namespace cairn::copyrpc {
namespace {

constexpr std::uint32_t kRing = 4096;

// A host that makes connections by itself and writes by hand.
struct Stranger : verbs::VerbsHost {
    explicit Stranger(const char* address) : VerbsHost(address, 99), qp(qps.emplace_back(make_qp()).get()) {}
    void ask(std::span<const std::uint8_t> private_data, Instant now) {
        verbs::ConnectTo to;
        to.remote = net::IpAddress::parse("10.0.0.2").value();
        to.port = kService;
        to.choice.access = verbs::Rights{verbs::Right::RemoteWrite};
        to.choice.private_data = private_data;
        ASSERT_TRUE(connector->connect(*qp, to, now).ok());
    }
    void look() {
        while (const std::optional<cm::Event> event = connector->poll_event()) {
            if (const auto* up = std::get_if<cm::Established>(&*event)) {
                peer = Hello::parse(std::span(up->private_data.octets).first(up->private_data.size));
            } else if (std::holds_alternative<cm::Rejected>(*event)) {
                refused = true;
            } else if (std::holds_alternative<cm::DisconnectRequested>(*event)) {
                ended = true;
            }
        }
    }
    // Writes the batch that stands at the front of the memory to the front of the peer's ring.
    void write(std::uint32_t immediate, std::uint32_t bytes = kBlockBytes) {
        const std::array<verbs::Sge, 1> pieces{mr->sge(0, bytes)};
        verbs::SendRequest request;
        request.opcode = verbs::WorkOpcode::RdmaWriteWithImmediate;
        request.sges = pieces;
        request.immediate = immediate;
        request.remote_address = peer->address;
        request.rkey = peer->rkey;
        EXPECT_EQ(qp->post_send(request), verbs::PostVerdict::Posted);
    }

    verbs::Qp* qp;  // one of `qps`, which end after the connector
    std::optional<Hello> peer;
    bool refused = false;
    bool ended = false;
};

class CopyrpcStranger : public TwoHosts {
protected:
    CopyrpcStranger() : TwoHosts(config()) {
        stranger.port.join(server.port);
        server.port.join(stranger.port);
    }
    static EndpointConfig config() {
        EndpointConfig config;
        config.ring_bytes = kRing;
        config.receives = 16;
        config.answer_bytes = 400;
        return config;
    }
    static RawHello hello() {
        RawHello raw;
        Hello{kRing, 16, 0, Rkey{}}.emit(raw);
        return raw;
    }
    void ask(const RawHello& raw) {
        stranger.ask({reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)}, now);
        run_all(milliseconds(5));
    }
    void run_all(Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(20)) {
            client.turn(now);
            server.turn(now);
            stranger.worker->turn(now);
            stranger.look();
        }
    }
    // A batch of one message, as the stranger has it.
    void compose(const Message& message, const BatchHeader& header) {
        RawBatchHeader raw;
        header.emit(raw);
        std::memcpy(stranger.memory().data(), &raw, sizeof(raw));
        (void)message.emit(stranger.memory().subspan(kBlockBytes));
    }
    // The first batch of its connection, with this message.
    void send_first(const Message& message) {
        compose(message, {0, 1, 0, 0, 0});
        stranger.write(2, 2 * kBlockBytes);
        run_all(milliseconds(5));
    }
    std::uint64_t breaches(Breach breach) { return server.endpoint->statistics().breaches.of(breach); }

    Stranger stranger{"10.0.0.9"};
};

TEST_F(CopyrpcStranger, AGreetingThatIsNoneIsRefused) {
    RawHello raw = hello();
    raw.ring_log2 = 11;
    ask(raw);
    EXPECT_TRUE(stranger.refused);
    EXPECT_FALSE(stranger.peer.has_value());
    EXPECT_EQ(server.endpoint->statistics().connections_refused, 1U);
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
    EXPECT_FALSE(parsed([](RawHello& raw) { raw.version = 2; }));
    EXPECT_FALSE(parsed([](RawHello& raw) { raw.ring_log2 = 21; }));
    EXPECT_FALSE(parsed([](RawHello& raw) { raw.ring_log2 = 44; })) << "12 modulo 32";
    EXPECT_FALSE(parsed([](RawHello& raw) { raw.receives.set(3); }));
    EXPECT_FALSE(parsed([](RawHello& raw) { raw.receives.set(4097); }));
    EXPECT_FALSE(Hello::parse({}));
}

TEST_F(CopyrpcStranger, EachBreachClosesItsConnectionAndNoOther) {
    const SessionId session = connect();
    ask(hello());
    ASSERT_TRUE(stranger.peer.has_value());
    Message request;
    request.type = kKeep;
    request.charge = 200;
    send_first(request);
    EXPECT_EQ(breaches(Breach::Overdrawn), 1U);
    EXPECT_TRUE(stranger.ended);
    EXPECT_TRUE(kept.empty());
    (void)post(session, 1);
    run_all(milliseconds(5));
    EXPECT_EQ(count(CallStatus::Ok), 1U);
    EXPECT_EQ(server.endpoint->statistics().peers_lost, 1U);
}

TEST_F(CopyrpcStranger, AnAnswerToACallOfSomebodyElseIsABreach) {
    const SessionId session = connect();
    int ended = 0;
    Call call;  // the server calls the client, which keeps silent
    call.type = kKeep + 1;
    client.endpoint->set_handler(
        kKeep + 1, [](void*, const Request&) {}, nullptr);
    call.context = &ended;
    call.completion = [](void* context, const rpc::CallResult&) { ++*static_cast<int*>(context); };
    EXPECT_EQ(server.endpoint->post(SessionId{0}, call, now).verdict, PostVerdict::Posted);
    run_all(milliseconds(1));
    ask(hello());
    ASSERT_TRUE(stranger.peer.has_value());
    Message answer;
    answer.answer = true;
    answer.call = 0;  // the number of that call
    send_first(answer);
    EXPECT_EQ(breaches(Breach::UnknownCall), 1U);
    EXPECT_EQ(ended, 0);
    (void)session;
}

TEST_F(CopyrpcStranger, AnAnswerThatNobodyAskedForIsABreach) {
    ask(hello());
    ASSERT_TRUE(stranger.peer.has_value());
    Message answer;
    answer.answer = true;
    send_first(answer);
    EXPECT_EQ(breaches(Breach::UnknownCall), 1U);
    EXPECT_EQ(server.endpoint->statistics().late_answers, 0U);
}

TEST_F(CopyrpcStranger, ARequestIsForgottenWithTheConnectionOfItsCaller) {
    (void)post(connect(), 1, 32, kKeep);
    run_all(milliseconds(1));
    ASSERT_EQ(kept.size(), 1U);
    const RequestHandle of_client = kept[0];
    kept.clear();
    ask(hello());
    ASSERT_TRUE(stranger.peer.has_value());
    Message request;
    request.type = kKeep;
    request.charge = 4;
    send_first(request);
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_EQ(server.endpoint->reserve(kept[0], 10).size(), 10U);
    stranger.write(0);
    run_all(milliseconds(5));
    EXPECT_EQ(breaches(Breach::BadImmediate), 1U);
    EXPECT_EQ(server.endpoint->requests_kept(), 1U);
    EXPECT_FALSE(server.endpoint->respond(kept[0], now));
    EXPECT_FALSE(server.endpoint->refuse(kept[0], now));
    EXPECT_TRUE(server.endpoint->respond(of_client, now));
}

TEST_F(CopyrpcStranger, ARingHasNothingOfItsFormerSession) {
    const SessionId session = connect();
    (void)post(session, 1);
    run_all(milliseconds(1));
    const int executed = static_cast<int>(server.endpoint->statistics().requests_handled);
    client.endpoint->disconnect(session, now);
    for (int i = 0; i < 3000; ++i, now = now + milliseconds(5)) {  // until its memory is free
        client.turn(now);
        server.turn(now);
    }
    ASSERT_EQ(server.endpoint->sessions_open(), 0U);
    ask(hello());
    ASSERT_TRUE(stranger.peer.has_value());
    stranger.write(3, 0);  // a batch as long as that one was, of which nothing is written
    run_all(milliseconds(5));
    EXPECT_EQ(static_cast<int>(server.endpoint->statistics().requests_handled), executed);
    EXPECT_EQ(breaches(Breach::BadHeader), 1U);
}

// More of them than the connector looks at in a turn, so that some of their batches come before Established.
TEST_F(CopyrpcStranger, BreachesBeforeAConnectionIsEstablishedLeaveNothingBehind) {
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
        one.worker->turn(now);  // its word that it is ready is lost
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

TEST_F(CopyrpcStranger, ARingLargerThanOursIsRefused) {
    RawHello raw = hello();
    raw.ring_log2 = 13;
    ask(raw);
    EXPECT_TRUE(stranger.refused);
    EXPECT_EQ(server.pool.live(), 0U);
}

TEST_F(CopyrpcStranger, TheKeyOfAnotherSessionIsOfNoUse) {
    const SessionId session = connect();
    ask(hello());
    ASSERT_TRUE(stranger.peer.has_value());
    Stranger other{"10.0.0.8"};
    other.port.join(server.port);
    server.port.join(other.port);
    const RawHello raw = hello();
    other.ask({reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)}, now);
    for (int i = 0; i < 200; ++i, now = now + microseconds(20)) {
        server.turn(now);
        other.worker->turn(now);
        other.look();
    }
    ASSERT_TRUE(other.peer.has_value());
    stranger.peer = other.peer;  // as if it had guessed
    stranger.write(1);
    run_all(milliseconds(5));
    EXPECT_EQ(stranger.qp->state(), verbs::QpState::Err);
    EXPECT_EQ(other.qp->state(), verbs::QpState::Rts);
    (void)session;
}

TEST_F(CopyrpcStranger, ASendInsteadOfABatchIsABreach) {
    ask(hello());
    ASSERT_TRUE(stranger.peer.has_value());
    verbs::SendRequest request;
    EXPECT_EQ(stranger.qp->post_send(request), verbs::PostVerdict::Posted);
    run_all(milliseconds(5));
    EXPECT_EQ(breaches(Breach::BadImmediate), 1U);
    EXPECT_TRUE(stranger.ended);
}

TEST_F(CopyrpcStranger, AFloodOfBatchesUsesUpItsOwnReceiveRequestsAlone) {
    const SessionId session = connect();
    ask(hello());
    ASSERT_TRUE(stranger.peer.has_value());
    for (std::uint16_t i = 0; i < 100; ++i) {
        compose({}, {i, 0, 0, 0, 0});
        stranger.write(1);
        run_all(microseconds(40));
        (void)post(session, i + 1U);
    }
    run_all(milliseconds(5));
    EXPECT_EQ(count(CallStatus::Ok), 100U);
    EXPECT_GE(breaches(Breach::BadImmediate) + breaches(Breach::BadHeader), 1U);
}

TEST_F(CopyrpcStranger, TheRingOfAnotherSessionIsOutOfReach) {
    const SessionId session = connect();
    ask(hello());
    ASSERT_TRUE(stranger.peer.has_value());
    compose({}, {0, 0, 0, 0, 0});
    stranger.peer->address += kRing;  // beyond its own ring
    stranger.write(1);
    run_all(milliseconds(5));
    EXPECT_EQ(stranger.qp->state(), verbs::QpState::Err);
    (void)post(session, 1);
    run_all(milliseconds(5));
    EXPECT_EQ(count(CallStatus::Ok), 1U);
}

}  // namespace
}  // namespace cairn::copyrpc
