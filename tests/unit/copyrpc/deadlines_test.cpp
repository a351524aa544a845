// Calls whose deadlines pass before they have left.
#include "rpc/common/time_left.hpp"
#include "tests/unit/copyrpc/two_hosts.hpp"

namespace cairn::copyrpc {
namespace {

TEST(CopyrpcTimeLeft, TheLongestTimeIsOneThatOnlyTheCallerCounts) {
    const Instant since{1000};
    EXPECT_EQ(rpc::deadline_of(rpc::kNoTimeLimit, since), Instant::never());
    EXPECT_EQ(rpc::deadline_of(rpc::kMostTimeLeft, since), Instant::never());
    EXPECT_EQ(rpc::deadline_of(rpc::kMostTimeLeft - 1, since), since + microseconds(rpc::kMostTimeLeft - 1));
}

class CopyrpcDeadlines : public TwoHosts {
protected:
    CopyrpcDeadlines() : TwoHosts(small_config(400)), session(connect()) {}
    [[nodiscard]] Call timed(std::uint64_t tag, Instant deadline) {
        Call call;
        call.type = kEcho;
        call.context = this;
        call.tag = tag;
        call.deadline = deadline;
        call.completion = [](void* context, const rpc::CallResult& result) {
            auto& self = *static_cast<CopyrpcDeadlines*>(context);
            EXPECT_FALSE(self.posting);
            self.results[result.tag] = result.status;
        };
        return call;
    }
    void post_timed(std::uint64_t tag, Instant deadline) {
        posting = true;
        EXPECT_EQ(client.endpoint->post(session, timed(tag, deadline), now).verdict, PostVerdict::Posted);
        posting = false;
    }
    // Posts a call whose completion posts it again, with the same deadline.
    void post_stubbornly() {
        Call call = timed(0, now);
        call.completion = [](void* context, const rpc::CallResult& result) {
            auto& self = *static_cast<CopyrpcDeadlines*>(context);
            EXPECT_EQ(result.status, CallStatus::DeadlinePassed);
            if (++self.ended < 100) {
                self.post_stubbornly();
            }
        };
        EXPECT_EQ(client.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
    }
    // Uses up all room for answers with requests that get no answer.
    void use_up_room() {
        for (std::uint64_t tag = 100; tag < 102; ++tag) {
            ASSERT_EQ(post(session, tag, 32, kKeep).verdict, PostVerdict::Posted);
            run(milliseconds(1));
        }
        ASSERT_EQ(kept.size(), 2U);
        empty_answers = true;
    }
    [[nodiscard]] std::uint64_t handled() const { return server.endpoint->statistics().requests_handled; }

    SessionId session;
    bool posting = false;
    int ended = 0;
};

TEST_F(CopyrpcDeadlines, ACallWhoseTimeIsOverWhenItIsPostedIsNotSent) {
    post_timed(1, now);
    EXPECT_TRUE(results.empty());
    run(microseconds(20));
    EXPECT_EQ(results.at(1), CallStatus::DeadlinePassed) << "in the turn";
    posting = true;
    EXPECT_EQ(client.endpoint->try_post(session, timed(2, now), now).attempt, Attempt::Posted);
    posting = false;
    run(microseconds(20));
    EXPECT_EQ(results.at(2), CallStatus::DeadlinePassed);
    run(milliseconds(1));
    EXPECT_EQ(handled(), 0U);
    EXPECT_EQ(client.endpoint->statistics().requests_sent, 0U);
    EXPECT_EQ(client.endpoint->calls_pending(), 0U);
}

TEST_F(CopyrpcDeadlines, WhoPostsAnewWhatIsOverHoldsNobodyUp) {
    post_stubbornly();
    client.turn(now);
    EXPECT_LE(ended, 2) << "a turn ends";
    run(milliseconds(2));
    EXPECT_EQ(ended, 100);
    EXPECT_EQ(client.endpoint->calls_pending(), 0U);
}

// The clock of deadlines checks them once in a tenth of a millisecond.
TEST_F(CopyrpcDeadlines, ACallWhoseTimePassesWhileItWaitsForRoomIsNotSent) {
    use_up_room();
    now = Instant{now.ns / rpc::Deadlines::kSlot.ns * rpc::Deadlines::kSlot.ns} + rpc::Deadlines::kSlot;
    client.turn(now);
    now = now + microseconds(1);
    post_timed(1, now + microseconds(2));
    post_timed(2, now + milliseconds(50));
    post_timed(3, now + microseconds(3));
    now = now + microseconds(4);
    EXPECT_TRUE(server.endpoint->respond(kept[0], now));
    EXPECT_TRUE(server.endpoint->respond(kept[1], now));
    run(microseconds(40), microseconds(1));
    EXPECT_EQ(results.at(1), CallStatus::DeadlinePassed);
    EXPECT_EQ(results.at(2), CallStatus::Ok);
    EXPECT_EQ(results.at(3), CallStatus::DeadlinePassed);
    EXPECT_EQ(handled(), 3U);
    EXPECT_EQ(client.endpoint->calls_pending(), 0U);
}

// Callers of other calls get no completion within post(), and no caller gets two.
TEST_F(CopyrpcDeadlines, WhatIsOverIsToldInTheTurnWhoeverPosts) {
    use_up_room();
    post_timed(1, now + microseconds(2));
    now = now + microseconds(4);
    kept.clear();  // refused
    server.turn(now);
    client.turn(now);
    post_timed(2, now + milliseconds(50));
    run(milliseconds(1));
    EXPECT_EQ(results.at(1), CallStatus::DeadlinePassed);
    EXPECT_EQ(results.at(2), CallStatus::Ok);
    EXPECT_EQ(handled(), 3U);
}

}  // namespace
}  // namespace cairn::copyrpc
