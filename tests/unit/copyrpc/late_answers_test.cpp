// With flow control by READs: a client calls and lets its ring fill, and the server keeps answers for it meanwhile.
#include <algorithm>

#include "tests/unit/copyrpc/two_hosts.hpp"

namespace cairn::copyrpc {
namespace {

constexpr std::size_t kAnswerBytes = 6000;
constexpr std::uint64_t kCalls = 60;
constexpr std::size_t kPool = 1U << 20U;  // the server's; a session's answers take an eighth of it at most
constexpr std::uint8_t kLongAnswer = 9;

class CopyrpcLateAnswers : public TwoHosts {
protected:
    CopyrpcLateAnswers() : TwoHosts(config(), config(), Host::kPoolBytes, kPool), other("10.0.0.3", 33, config()) {
        other.port.join(server.port);
        server.port.join(other.port);
        server.endpoint->set_handler(
            kLongAnswer,
            [](void* self, const Request& request) {
                const auto& long_answer = static_cast<CopyrpcLateAnswers*>(self)->answer;
                EXPECT_TRUE(request.endpoint.answer(request.handle, long_answer, request.now));
            },
            this);
        empty_answers = true;
    }
    static EndpointConfig config() {
        EndpointConfig config = small_config(kAnswerBytes);
        config.ring_bytes = 32U << 10U;
        config.sessions_max = 8;
        config.flow = Flow::Read;
        return config;
    }
    // Posts the calls, which leave; then only the server takes turns.
    void call_and_fall_silent(SessionId session) {
        for (std::uint64_t tag = 1; tag <= kCalls; ++tag) {
            ASSERT_EQ(post(session, tag, 32, kLongAnswer).verdict, PostVerdict::Posted);
        }
        client.turn(now);
        for (const Instant end = now + milliseconds(5); now < end; now = now + microseconds(20)) {
            server.turn(now);
        }
    }
    const Statistics& counted() const { return server.endpoint->statistics(); }

    Host other;
    std::vector<std::uint8_t> answer = std::vector<std::uint8_t>(kAnswerBytes, 0x5a);
};

TEST_F(CopyrpcLateAnswers, ASessionHasAShareOfTheMemoryAndItsOtherRequestsWait) {
    const SessionId session = connect();
    const std::uint64_t idle_bytes = server.pool.live_bytes();
    call_and_fall_silent(session);
    EXPECT_GT(counted().answers_put_off, 5U);
    EXPECT_GT(counted().requests_held_back, 10U);
    EXPECT_EQ(counted().requests_handled + counted().requests_held_back, kCalls);
    EXPECT_LT(server.pool.live_bytes() - idle_bytes, kPool / 4) << "an eighth, as buffers are powers of two";
    run(milliseconds(20));
    EXPECT_EQ(count(CallStatus::Ok), kCalls);
    EXPECT_EQ(counted().answers_given_up, 0U);
    EXPECT_EQ(server.pool.live_bytes(), idle_bytes);
}

TEST_F(CopyrpcLateAnswers, OthersFindMemoryForTheirs) {
    const SessionId session = connect();
    const SessionId others = other.endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), kService, now).value();
    for (const Instant end = now + milliseconds(5); now < end; now = now + microseconds(20)) {
        other.turn(now);
        server.turn(now);
    }
    call_and_fall_silent(session);
    std::size_t ended = 0;
    Call call;
    call.type = kLongAnswer;
    call.context = &ended;
    call.completion = [](void* context, const rpc::CallResult& result) {
        EXPECT_EQ(result.status, CallStatus::Ok);
        EXPECT_EQ(result.response.size(), kAnswerBytes);
        ++*static_cast<std::size_t*>(context);
    };
    for (std::uint64_t i = 0; i < kCalls; ++i) {
        ASSERT_EQ(other.endpoint->post(others, call, now).verdict, PostVerdict::Posted);
    }
    for (const Instant end = now + milliseconds(20); now < end; now = now + microseconds(20)) {
        other.turn(now);
        server.turn(now);
    }
    EXPECT_EQ(ended, kCalls);
    EXPECT_EQ(counted().answers_given_up, 0U);
}

TEST_F(CopyrpcLateAnswers, RequestsThatWaitAreNotExecutedOnceTheirCallersHaveGivenUp) {
    const SessionId session = connect();
    std::vector<CallStatus> ended;
    Call call;
    call.type = kLongAnswer;
    call.deadline = now + milliseconds(3);
    call.context = &ended;
    call.completion = [](void* context, const rpc::CallResult& result) {
        static_cast<std::vector<CallStatus>*>(context)->push_back(result.status);
    };
    for (std::uint64_t i = 0; i < kCalls; ++i) {
        ASSERT_EQ(client.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
    }
    client.turn(now);
    for (const Instant end = now + milliseconds(5); now < end; now = now + microseconds(20)) {
        server.turn(now);
    }
    const std::uint64_t handled = counted().requests_handled;
    run(milliseconds(20));
    EXPECT_EQ(ended.size(), kCalls);
    EXPECT_EQ(counted().requests_handled, handled);
    EXPECT_EQ(counted().requests_expired, kCalls - handled);
}

TEST_F(CopyrpcLateAnswers, ASessionThatEndsTakesRequestsThatWaitWithIt) {
    const SessionId session = connect();
    call_and_fall_silent(session);
    ASSERT_GT(counted().requests_held_back, 0U);
    server.endpoint.reset();
    EXPECT_EQ(server.pool.live(), 0U);
}

TEST_F(CopyrpcLateAnswers, NoRequestOvertakesThoseThatWait) {
    const SessionId session = connect();
    std::vector<std::uint64_t> order;
    rpc::MsgBuffer room = client.pool.allocate(8);
    Call call;
    call.type = kLongAnswer;
    call.context = &order;
    call.completion = [](void* context, const rpc::CallResult& result) {
        EXPECT_EQ(result.status, CallStatus::Ok);
        static_cast<std::vector<std::uint64_t>*>(context)->push_back(result.tag);
    };
    for (call.tag = 1; call.tag < kCalls; ++call.tag) {
        ASSERT_EQ(client.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
    }
    call.type = kEcho;
    call.response = &room;  // its answer is short, and gets memory
    ASSERT_EQ(client.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
    client.turn(now);
    for (const Instant end = now + milliseconds(5); now < end; now = now + microseconds(20)) {
        server.turn(now);
    }
    ASSERT_GT(counted().requests_held_back, 1U);
    run(milliseconds(20));
    ASSERT_EQ(order.size(), kCalls);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

// Each end could wait for the other, so neither waits, and answers without memory are given up.
TEST_F(CopyrpcLateAnswers, WhereBothEndsCallNoRequestWaits) {
    const SessionId session = connect();
    client.endpoint->set_handler(
        kKeep,
        [](void* all, const Request& request) {
            static_cast<std::vector<rpc::KeptRequest>*>(all)->push_back(request.keep());
        },
        &kept);
    Call back;
    back.type = kKeep;
    ASSERT_EQ(server.endpoint->post(SessionId{0}, back, now).verdict, PostVerdict::Posted);
    run(milliseconds(1));
    ASSERT_EQ(kept.size(), 1U);
    call_and_fall_silent(session);
    EXPECT_EQ(counted().requests_held_back, 0U);
    EXPECT_EQ(counted().requests_handled, kCalls);
    EXPECT_GT(counted().answers_given_up, 0U);
    run(milliseconds(20));
    EXPECT_EQ(count(CallStatus::Ok) + count(CallStatus::AnswerLost), kCalls);
    EXPECT_EQ(count(CallStatus::AnswerLost), counted().answers_given_up);
}

// A call to the peer that begins while requests wait lets these go on.
TEST_F(CopyrpcLateAnswers, RequestsThatWaitGoOnOnceThisEndCallsItsPeer) {
    const SessionId session = connect();
    call_and_fall_silent(session);
    ASSERT_LT(counted().requests_handled, kCalls);
    Call back;
    back.type = kEcho;
    ASSERT_EQ(server.endpoint->post(SessionId{0}, back, now).verdict, PostVerdict::Posted);
    server.turn(now);
    EXPECT_EQ(counted().requests_handled, kCalls);
}

}  // namespace
}  // namespace cairn::copyrpc
