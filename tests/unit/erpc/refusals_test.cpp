// Requests that are refused: their calls end at once, and only their own.
#include <gtest/gtest.h>

#include "tests/unit/erpc/two_hosts.hpp"

namespace cairn::erpc {
namespace {

class Refusals : public TwoHosts {
protected:
    void ask_for_type(std::uint8_t type, std::uint64_t tag, std::size_t bytes) {
        requests[tag].resize(bytes);
        Call call;
        call.type = type;
        call.request = requests[tag];
        call.context = this;
        call.completion = &TwoHosts::completed;
        call.tag = tag;
        ASSERT_EQ(client.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
    }

    SessionId session{};
};

TEST_F(Refusals, CallsOfATypeWithoutHandlerFailAtOnce) {
    session = connect();
    run(milliseconds(1));
    ask_for_type(kEcho + 1, 1, 10);
    ask_for_type(kEcho + 1, 2, 30'000);
    post(session, 3);
    run(kRtoMin - microseconds(500));
    EXPECT_EQ(results.at(1), CallStatus::NoHandler);
    EXPECT_EQ(results.at(2), CallStatus::NoHandler);
    EXPECT_EQ(results.at(3), CallStatus::Ok);
    EXPECT_EQ(client.endpoint->statistics().retransmits, 0U);
    EXPECT_EQ(server.pool->live(), 1U);
}

TEST_F(Refusals, AHandlerMayRefuseLaterAndItsCallIsNotExecutedAgain) {
    session = connect();
    run(milliseconds(1));
    server.port.fate = [](std::uint64_t number) { return number % 3 == 1 ? 0 : 1; };
    hold = true;
    for (std::uint64_t tag = 1; tag < 20; ++tag) {
        post(session, tag);
        run(milliseconds(1));
        for (const auto& [handle, bytes] : std::exchange(held, {})) {
            EXPECT_TRUE(server.endpoint->refuse(handle, now));
            EXPECT_FALSE(server.endpoint->refuse(handle, now));
            EXPECT_FALSE(server.endpoint->respond(handle, now));
        }
    }
    run(milliseconds(300));
    expect_all(19, CallStatus::AnswerLost);
    expect_each_executed_at_most_once();
    EXPECT_EQ(server.pool->live(), 0U);
}

}  // namespace
}  // namespace cairn::erpc
