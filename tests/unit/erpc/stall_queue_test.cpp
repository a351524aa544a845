// The sessions that a turn serves when credits are scarce.
#include "rpc/erpc/stall_queue.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/wire_port.hpp"

namespace cairn::erpc {
namespace {

class StallQueueTest : public testing::Test {
protected:
    Session& open(std::uint16_t credits) {
        Session& session = *sessions.open({path, Qpn{0x100}, Qkey{1}}, 1, start);
        session.client = std::make_unique<ClientSession>();
        session.client->number_slots(0);
        session.client->credits = credits;
        return session;
    }
    void stall(Session& session) {
        session.client->move(session.client->slots[0], SlotState::WaitsCredit);
        queue.join(session);
    }
    void give_credit(Session& session) {
        ++session.client->credits;
        queue.credits_came(session);
    }
    // Returns the served sessions. Each of them sends its waiting request if it has a credit.
    std::vector<SessionId> served() {
        std::vector<SessionId> those;
        queue.serve(sessions, [&those](Session& session) {
            those.push_back(session.self);
            if (session.client->credits != 0) {
                --session.client->credits;
                session.client->move(session.client->slots[0], SlotState::Sent);
            }
        });
        return those;
    }

    Instant start{1'000'000'000};
    test::WirePort port{"10.0.0.1", 16};
    port::Path* path =
        port.open_path({port.local_address(), net::IpAddress::parse("10.0.0.2").value(), 0xc000, 0}, start);
    SessionTable sessions{4};
    StallQueue queue{4};
};

TEST_F(StallQueueTest, SessionsWithoutCreditsAreNotLookedAt) {
    stall(open(0));
    stall(open(0));
    EXPECT_TRUE(queue.empty());
    EXPECT_TRUE(queue.any_waits());
    EXPECT_TRUE(served().empty());
}

TEST_F(StallQueueTest, CreditsBringSessionsInTheirOrderAndOnce) {
    Session& first = open(0);
    Session& second = open(0);
    stall(first);
    stall(second);
    give_credit(second);
    give_credit(second);
    give_credit(first);
    EXPECT_EQ(served(), (std::vector{second.self, first.self}));
    EXPECT_EQ(first.client->stall, Stall::None);
    EXPECT_FALSE(queue.any_waits());
    EXPECT_TRUE(served().empty());
}

TEST_F(StallQueueTest, CreditsOfSessionsWithoutWaitingSlotsBringNothing) {
    Session& session = open(0);
    give_credit(session);
    EXPECT_TRUE(queue.empty());
}

// For example a transfer waits for a batch's credits, or for a place in a table.
TEST_F(StallQueueTest, ASessionStaysWhileItHasCreditsAndSlotsThatWait) {
    Session& session = open(2);
    stall(session);
    for (int turn = 0; turn < 3; ++turn) {
        std::size_t looks = 0;
        queue.serve(sessions, [&looks](Session&) { ++looks; });
        EXPECT_EQ(looks, 1U);
    }
    session.client->credits = 0;
    queue.serve(sessions, [](Session&) {});
    EXPECT_EQ(session.client->stall, Stall::Waits);
    EXPECT_TRUE(queue.empty());
}

TEST_F(StallQueueTest, AForgottenSessionIsServedNoMore) {
    Session& session = open(1);
    stall(session);
    queue.forget(session);
    EXPECT_FALSE(queue.any_waits());
    EXPECT_TRUE(served().empty());
}

}  // namespace
}  // namespace cairn::erpc
