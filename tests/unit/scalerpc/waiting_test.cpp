// Requests that wait in their blocks for threads and memory.
#include "tests/unit/scalerpc/threads.hpp"

namespace cairn::scalerpc {
namespace {

// Later requests of their sessions wait, too, whether they were READ or written.
TEST_F(ScalerpcBackground, RequestsThatWaitInTheirBlocksAreExecutedOnceInLaterSlices) {
    begin_with_threads(small(64), 32);
    ASSERT_TRUE(server->endpoint->set_background_handler(kSlow, echo, &in_background, 200).ok());
    const std::uint64_t live = server->pool.live();
    leave_memory(1024);
    again = true;
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        for (int each = 0; each < 4; ++each) {
            post(i, 100, each % 2 == 0 ? kSlow : kEcho);
        }
    }
    int ran = 0;
    for (int i = 0; i < 400; ++i) {
        ran += threads->run_one() ? 1 : 0;
        run(microseconds(25));
    }
    again = false;
    EXPECT_GT(counted().switches, 10U);
    for (int i = 0; i < 4000 && client->endpoint->calls_pending() != 0; ++i) {
        ran += threads->run_one() ? 1 : 0;
        run(microseconds(25));
    }
    EXPECT_EQ(client->endpoint->calls_pending(), 0U);
    EXPECT_EQ(count(CallStatus::Ok), results.size());
    EXPECT_EQ(in_background, ran);
    EXPECT_EQ(counted().requests_handled, results.size());
    check();
    give_memory_back();
    EXPECT_EQ(server->pool.live(), live);
}

TEST_F(ScalerpcBackground, RequestsThatWereReadWaitInTheirBlocksToo) {
    begin_with_threads(small(64), 1);
    ASSERT_TRUE(server->endpoint->set_background_handler(kSlow, echo, &in_background, 200).ok());
    leave_memory(0);
    for (int i = 0; i < 3; ++i) {
        post(0, 32, kSlow);
    }
    run(milliseconds(2));
    EXPECT_EQ(counted().requests_fetched, 3U);
    EXPECT_FALSE(threads->has_job(0));
    give_memory_back();
    for (int i = 0; i < 3; ++i) {
        run(milliseconds(1));
        EXPECT_TRUE(threads->run_one());
    }
    run(milliseconds(1));
    EXPECT_EQ(count(CallStatus::Ok), 3U);
    check();
}

TEST_F(ScalerpcBackground, ARequestThatWaitsInItsBlockIsNotExecutedBehindItsDeadline) {
    begin_with_threads(small(64), 1);
    ASSERT_TRUE(server->endpoint->set_background_handler(kSlow, echo, &in_background, 200).ok());
    leave_memory(0);
    post(0);  // its slice begins
    run(milliseconds(1));
    const std::array<std::uint8_t, 32> bytes{};
    Call timed;
    timed.type = kSlow;
    timed.request = bytes;
    timed.deadline = now + milliseconds(2);
    ASSERT_EQ(client->endpoint->post(sessions[0], timed, now).verdict, PostVerdict::Posted);
    run(microseconds(1900));
    EXPECT_EQ(counted().requests_expired, 0U);
    run(microseconds(200));
    EXPECT_EQ(counted().requests_expired, 1U);
    give_memory_back();
    run(milliseconds(1));
    EXPECT_FALSE(threads->has_job(0));
    EXPECT_EQ(counted().requests_handled, 1U) << "the first one";
    post(0);
    run(milliseconds(1));
    EXPECT_EQ(count(CallStatus::Ok), 2U);
}

TEST_F(ScalerpcBackground, ARequestBehindOneThatWaitsIsNotExecutedBehindItsDeadline) {
    begin_with_threads(small(64), 1);
    ASSERT_TRUE(server->endpoint->set_background_handler(kSlow, echo, &in_background, 200).ok());
    leave_memory(0);
    post(0);  // its slice begins
    run(milliseconds(1));
    post(0, 32, kSlow);
    const std::array<std::uint8_t, 32> bytes{};
    Call timed;
    timed.type = kEcho;
    timed.request = bytes;
    timed.deadline = now + milliseconds(2);
    ASSERT_EQ(client->endpoint->post(sessions[0], timed, now).verdict, PostVerdict::Posted);
    run(microseconds(1900));
    EXPECT_EQ(counted().requests_expired, 0U);
    run(microseconds(200));
    give_memory_back();
    run(milliseconds(1));
    EXPECT_TRUE(threads->run_one());
    run(milliseconds(1));
    EXPECT_EQ(counted().requests_expired, 1U);
    EXPECT_EQ(counted().requests_handled, 2U);
    post(0);
    run(milliseconds(1));
    EXPECT_EQ(count(CallStatus::Ok), 3U);
}

// Two of them have the jobs, and the next one waits without end.
TEST_F(ScalerpcBackground, ARequestThatIsOverWaitsForNobodyBeforeIt) {
    begin_with_threads(small(64), 1);
    ASSERT_TRUE(server->endpoint->set_background_handler(kSlow, echo, &in_background, 200).ok());
    for (int i = 0; i < 3; ++i) {
        post(0, 32, kSlow);
    }
    const std::array<std::uint8_t, 32> bytes{};
    Call timed;
    timed.type = kSlow;
    timed.request = bytes;
    timed.deadline = now + milliseconds(1);
    ASSERT_EQ(client->endpoint->post(sessions[0], timed, now).verdict, PostVerdict::Posted);
    run(microseconds(900));
    EXPECT_EQ(counted().requests_expired, 0U);
    run(microseconds(300));
    EXPECT_EQ(counted().requests_expired, 1U);
    for (int i = 0; i < 3; ++i) {
        run(milliseconds(1));
        EXPECT_TRUE(threads->run_one());
    }
    run(milliseconds(1));
    EXPECT_EQ(count(CallStatus::Ok), 3U);
}

TEST_F(ScalerpcBackground, ARequestThatWaitsForAThreadIsDeclinedIfItsTypeHasNoneAnyMore) {
    begin_with_threads(small(64), 1);
    ASSERT_TRUE(server->endpoint->set_background_handler(kSlow, echo, &in_background, 200).ok());
    for (int i = 0; i < 3; ++i) {
        post(0, 32, kSlow);
    }
    run(milliseconds(1));
    server->endpoint->set_handler(
        kSlow, [](void*, const RequestOf&) {}, nullptr);
    run(milliseconds(1));
    EXPECT_EQ(count(CallStatus::NotExecuted), 1U);
    EXPECT_TRUE(threads->run_one());
    run(milliseconds(1));
    EXPECT_TRUE(threads->run_one());
    run(milliseconds(1));
    EXPECT_EQ(count(CallStatus::Ok), 2U);
}

}  // namespace
}  // namespace cairn::scalerpc
