// A slot awaits the answer to a small request that was sent once. Each test has an event that ends this state.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/erpc/short_path.hpp"

namespace cairn::erpc {
namespace {

class AwaitedAnswer : public ShortPath {
protected:
    // Lets the client take an answer. Returns the answer to its slot's next call, with the same bytes.
    port::PacketRef forge_next(const port::PacketRef& answer) {
        const std::vector<std::uint8_t> bytes(answer.data, answer.data + answer.len);
        EXPECT_TRUE(answer_is_taken || takes(client, answer));
        answer_is_taken = true;
        const port::PacketRef buffer = client.worker->sender().take();
        port::PacketRef forged = answer;
        forged.cookie = buffer.cookie;
        forged.data = buffer.data;
        std::copy(bytes.begin(), bytes.end(), forged.data);
        unsigned more = kSlotsPerSession << 4U;  // the last four bits are not part of the number
        for (std::size_t at = kHeaders; more != 0; more >>= 8U) {
            more += forged.data[--at];
            forged.data[at] = static_cast<std::uint8_t>(more);
        }
        return forged;
    }

    bool answer_is_taken = false;
};

TEST_F(AwaitedAnswer, TheAnswerToARequestThatWasSentAgainDoesNotTakeIt) {
    const port::PacketRef packet = response();
    server.port.fate = [](std::uint64_t) { return 0; };
    for (const Instant end = now + milliseconds(20); now < end; now = now + microseconds(50)) {
        client.turn(now);
    }
    EXPECT_GT(client.endpoint->statistics().retransmits, 0U);
    EXPECT_FALSE(takes(client, packet));
}

TEST_F(AwaitedAnswer, TheAnswerToACallThatHasEndedDoesNotTakeIt) {
    const port::PacketRef packet = response();
    client.endpoint->disconnect(session, now);
    EXPECT_EQ(results.at(2), CallStatus::Disconnected);
    EXPECT_FALSE(takes(client, packet));
}

TEST_F(AwaitedAnswer, TheAnswerToACallPastItsDeadlineDoesNotTakeIt) {
    const port::PacketRef packet = response(milliseconds(1));
    now = now + milliseconds(3);
    client.turn(now);
    EXPECT_EQ(results.at(2), CallStatus::DeadlinePassed);
    EXPECT_FALSE(takes(client, packet));
}

TEST_F(AwaitedAnswer, TheAnswerToACallThatWasCancelledDoesNotTakeIt) {
    const port::PacketRef packet = response();
    EXPECT_TRUE(client.endpoint->cancel(second, now));
    EXPECT_FALSE(takes(client, packet));
}

// For one slot, the answer to its next call is forged after the last one.
TEST_F(AwaitedAnswer, OnlyTheAnswerToASmallCallTakesIt) {
    const port::PacketRef small = forge_next(response());
    post(session, 3);
    client.turn(now);
    requests[3] = requests[2];  // the request that the forged answer answers
    EXPECT_TRUE(takes(client, small));
    const port::PacketRef large = forge_next(small);
    post(session, 4, Instant::never(), 5000);
    client.turn(now);
    EXPECT_FALSE(takes(client, large)) << "the request is being moved";
}

TEST_F(AwaitedAnswer, NoPacketTakesItOnceALongAnswerHasBegun) {
    const port::PacketRef forged = forge_next(response());
    server.endpoint->set_handler(
        kEcho,
        [](void*, const Request& request) {
            const std::vector<std::uint8_t> answer(5000);
            request.endpoint.answer(request.handle, answer, request.now);
        },
        nullptr);
    post(session, 3);
    client.turn(now);
    server.turn(now);
    client.turn(now);
    ASSERT_EQ(results.count(3), 0U);
    EXPECT_FALSE(takes(client, forged));
}

// The completion of a call ends its session. The session's next answer comes later in the same burst.
TEST_F(AwaitedAnswer, AnAnswerBehindTheEndOfItsSessionDoesNotTakeIt) {
    session = connect();
    run(milliseconds(5));
    post(session, 1);
    post(session, 2);
    run(milliseconds(5));
    Call call;
    call.type = kEcho;
    call.request = requests[1];
    call.context = this;
    call.completion = [](void* context, const CallResult& result) {
        auto& self = *static_cast<AwaitedAnswer_AnAnswerBehindTheEndOfItsSessionDoesNotTakeIt_Test*>(context);
        self.results[3] = result.status;
        self.client.endpoint->disconnect(self.session, self.now);
    };
    EXPECT_EQ(client.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
    post(session, 4);
    client.turn(now);
    server.turn(now);
    std::array<port::PacketRef, 4> burst;
    ASSERT_EQ(client.port.receive_burst(burst, now), 2U);
    EXPECT_EQ(client.endpoint->take_known(std::span(burst).first(2), now), 1U);
    client.endpoint->check_invariants();
    EXPECT_EQ(results.at(3), CallStatus::Ok);
    EXPECT_EQ(results.at(4), CallStatus::Disconnected);
}

// More calls than slots: calls that leave the backlog are sent on the long path.
TEST_F(AwaitedAnswer, TheAnswerToACallThatWaitedTakesIt) {
    session = connect();
    for (std::uint64_t tag = 1; tag <= 2 * kSlotsPerSession + 1; ++tag) {
        post(session, tag);
    }
    for (int i = 0; results.size() < 2 * kSlotsPerSession && i < 1000; ++i, now = now + microseconds(50)) {
        server.turn(now);
        client.turn(now);
    }
    server.turn(now);
    EXPECT_TRUE(takes(client, arrived(client)));
    expect_all(2 * kSlotsPerSession + 1, CallStatus::Ok);
}

// A request sent in place belongs to its caller again once its tail was copied, which the long path does.
TEST_F(AwaitedAnswer, TheAnswerToARequestThatIsReadWhereItLiesDoesNotTakeIt) {
    client.config.qp.path_mtu_bytes = server.config.qp.path_mtu_bytes = 4096;  // the request is one packet
    client.restart(11);
    server.restart(22);
    SetUp();
    session = connect();
    run(milliseconds(5));
    post(session, 1);
    run(milliseconds(5));
    server.endpoint->set_handler(
        kEcho,
        [](void*, const Request& request) {
            request.endpoint.answer(request.handle, request.payload.first(8), request.now);
        },
        nullptr);
    post(session, 2, Instant::never(), kTailBytes);
    client.turn(now);
    server.turn(now);
    EXPECT_FALSE(takes(client, arrived(client)));
}

}  // namespace
}  // namespace cairn::erpc
