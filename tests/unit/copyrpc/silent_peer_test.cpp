// Peers that live but do not answer: the memory that calls to them hold, and calls to others meanwhile.
#include "tests/unit/copyrpc/two_hosts.hpp"

namespace cairn::copyrpc {
namespace {

constexpr std::size_t kHalf = 1900U << 10U;  // half of the memory that the calls of one session may lend
constexpr Duration kPatience = milliseconds(400);
constexpr std::uint32_t kFewCalls = 8;

EndpointConfig with_long_requests(std::uint32_t calls_max) {
    EndpointConfig config = small_config(8);
    config.message_bytes_max = kLongestOfPool;
    config.sessions_max = 8;
    config.calls_max = calls_max;
    config.peer_timeout = milliseconds(200);
    return config;
}

// `server` keeps requests of kKeep; `other` is another server. Both answer other calls at once.
class CopyrpcSilentPeer : public TwoHosts {
protected:
    explicit CopyrpcSilentPeer(std::uint32_t calls_max = 64)
        : TwoHosts(with_long_requests(calls_max)), other("10.0.0.3", 33, with_long_requests(calls_max)) {
        other.port.join(client.port);
        client.port.join(other.port);
        EXPECT_TRUE(other.endpoint->listen(kService).ok());
        for (Host* const host : {&server, &other}) {
            host->endpoint->set_handler(
                kEcho,
                [](void*, const Request& request) {
                    EXPECT_TRUE(request.endpoint.answer(request.handle, {}, request.now));
                },
                nullptr);
        }
        empty_answers = true;
    }
    void run_all(Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(50)) {
            client.turn(now);
            server.turn(now);
            other.turn(now);
        }
    }
    SessionId connect_to(const char* address) {
        const auto session = client.endpoint->connect(net::IpAddress::parse(address).value(), kService, now);
        EXPECT_TRUE(session.ok());
        run_all(milliseconds(5));
        return session.value();
    }
    // Makes a call that the server keeps for ever and its caller gives up.
    void give_up(SessionId session, std::size_t bytes) {
        const Posted call = post(session, ++tags, bytes, kKeep);
        ASSERT_EQ(call.verdict, PostVerdict::Posted);
        run_all(milliseconds(10));
        EXPECT_TRUE(client.endpoint->cancel(call.id, now));
    }
    std::uint64_t lost() { return client.endpoint->statistics().links.peers_lost; }
    std::uint64_t never_answering() { return client.endpoint->statistics().never_answering; }

    Host other;
    std::uint64_t tags = 1000;
};

TEST_F(CopyrpcSilentPeer, LongCallsToOneLeaveMemoryForCallsToOthers) {
    const SessionId silent = connect_to("10.0.0.2");
    const SessionId session = connect_to("10.0.0.3");
    give_up(silent, kHalf);
    give_up(silent, kHalf);  // it still waits for memory when it is given up
    EXPECT_EQ(kept.size(), 1U);
    (void)post(session, 1, kHalf);
    (void)post(session, 2);
    run_all(milliseconds(20));
    EXPECT_EQ(count(CallStatus::Ok), 2U);
    EXPECT_EQ(never_answering(), 0U);
}

TEST_F(CopyrpcSilentPeer, ShortCallsPassThoseThatWaitForMemoryAndLongOnesDoNot) {
    const SessionId session = connect_to("10.0.0.2");
    (void)post(session, 1, kHalf, kKeep);
    (void)post(session, 2, kHalf);
    (void)post(session, 3);
    (void)post(session, 4, 5000);
    (void)post(session, 5);
    run_all(milliseconds(20));
    EXPECT_EQ(results, (std::map<std::uint64_t, CallStatus>{{3, CallStatus::Ok}, {5, CallStatus::Ok}}));
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_TRUE(server.endpoint->respond(kept[0], now));
    run_all(milliseconds(30));
    EXPECT_EQ(count(CallStatus::Ok), 5U);
}

TEST_F(CopyrpcSilentPeer, CallsThatWaitForMemoryEndByTheirDeadlinesAndWithTheirSession) {
    const SessionId session = connect_to("10.0.0.2");
    (void)post(session, 1, kHalf, kKeep);
    std::vector<std::uint8_t> request(kHalf);
    CallStatus ended = CallStatus::Ok;
    Call call;
    call.type = kEcho;
    call.request = request;
    call.deadline = now + milliseconds(10);
    call.context = &ended;
    call.completion = [](void* context, const rpc::CallResult& result) {
        *static_cast<CallStatus*>(context) = result.status;
    };
    ASSERT_EQ(client.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
    (void)post(session, 2, kHalf);
    run_all(milliseconds(20));
    EXPECT_EQ(ended, CallStatus::DeadlinePassed);
    EXPECT_EQ(results.count(2), 0U);
    client.endpoint->disconnect(session, now);
    EXPECT_EQ(count(CallStatus::Disconnected), 2U);
    EXPECT_EQ(client.endpoint->calls_pending(), 0U);
}

// Two of them keep all memory that callers may lend.
TEST_F(CopyrpcSilentPeer, PeersThatLetNothingGoAreLostOnceOthersWaitForIt) {
    const SessionId first = connect_to("10.0.0.2");
    const SessionId second = connect_to("10.0.0.2");
    const SessionId session = connect_to("10.0.0.3");
    give_up(first, kHalf);
    give_up(second, kHalf);
    run_all(kPatience + kPatience);
    EXPECT_EQ(never_answering(), 0U) << "nobody waits";
    (void)post(session, 1, kHalf);
    run_all(milliseconds(20));
    EXPECT_EQ(results.count(1), 0U);
    run_all(kPatience);
    EXPECT_EQ(results.at(1), CallStatus::Ok);
    EXPECT_EQ(never_answering(), 2U);
    EXPECT_EQ(lost(), 2U);
    (void)post(session, 2, kHalf);
    run_all(milliseconds(20));
    EXPECT_EQ(count(CallStatus::Ok), 2U) << "the others live on";
}

class CopyrpcSilentPeerOfFewCalls : public CopyrpcSilentPeer {
protected:
    CopyrpcSilentPeerOfFewCalls() : CopyrpcSilentPeer(kFewCalls) {}
};

TEST_F(CopyrpcSilentPeerOfFewCalls, APeerThatKeepsAllNumbersIsLostOnceOthersWaitForOne) {
    const SessionId silent = connect_to("10.0.0.2");
    const SessionId session = connect_to("10.0.0.3");
    for (std::uint32_t i = 0; i < kFewCalls; ++i) {
        give_up(silent, 32);
    }
    (void)post(session, 1);
    run_all(milliseconds(20));
    EXPECT_EQ(results.count(1), 0U);
    run_all(kPatience);
    EXPECT_EQ(results.at(1), CallStatus::Ok);
    EXPECT_EQ(never_answering(), 1U);
}

// It answers one after the other, each of them late.
TEST_F(CopyrpcSilentPeerOfFewCalls, APeerThatAnswersLateIsNotLost) {
    const SessionId late = connect_to("10.0.0.2");
    for (std::uint32_t i = 0; i < kFewCalls; ++i) {
        give_up(late, 32);
    }
    for (std::uint32_t i = 0; i < kFewCalls; ++i) {
        (void)post(late, 1 + i, 32, kKeep);  // one more than there are numbers
        run_all(kPatience / 2);
        EXPECT_TRUE(server.endpoint->respond(kept.at(i), now));
        run_all(milliseconds(1));
    }
    EXPECT_EQ(never_answering(), 0U);
    EXPECT_EQ(lost(), 0U);
}

}  // namespace
}  // namespace cairn::copyrpc
