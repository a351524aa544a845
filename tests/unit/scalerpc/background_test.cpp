// Background handlers.
#include "tests/unit/scalerpc/threads.hpp"

namespace cairn::scalerpc {
namespace {

TEST_F(ScalerpcBackground, ATypesLongestAnswerIsOneThatABlockCarries) {
    const EndpointConfig config = small(64);
    begin_with_threads(config, 1);
    const std::uint32_t most = config.shape.message_max();
    const Status longer = server->endpoint->set_background_handler(kSlow, echo, &in_background, most + 1);
    ASSERT_FALSE(longer.ok());
    EXPECT_EQ(longer.error().remedy, "register " + std::to_string(most) + " or less, or give both ends larger blocks");
    EXPECT_FALSE(server->endpoint->set_legacy_handler(kSlow, echo, &in_background, most + 1).ok());
    post(0, 64, kSlow);
    run(milliseconds(1));
    EXPECT_EQ(count(CallStatus::NoHandler), 1U);
    EXPECT_TRUE(server->endpoint->set_background_handler(kSlow, echo, &in_background, most).ok());
    EXPECT_TRUE(server->endpoint->set_legacy_handler(kSlow, echo, &in_background, most).ok());
    post(0, 64, kSlow);
    run(milliseconds(1));
    EXPECT_TRUE(threads->run_one());
    run(milliseconds(1));
    EXPECT_EQ(count(CallStatus::Ok), 1U);
}

// The requests wait while other clients use their blocks.
TEST_F(ScalerpcBackground, RequestsThatWaitForAThreadStayAsTheyWere) {
    begin_with_threads(small(64), 30);
    ASSERT_TRUE(server->endpoint->set_background_handler(kSlow, echo, &in_background, 200).ok());
    for (std::size_t i = 0; i < sessions.size(); i += 2) {
        post(i, 100, kSlow);
    }
    run(milliseconds(2));
    again = true;
    for (std::size_t i = 1; i < sessions.size(); i += 2) {
        post(i, 150);
    }
    run(milliseconds(10));
    again = false;
    EXPECT_GT(counted().switches, 10U);
    for (int i = 0; i < 200; ++i) {
        (void)threads->run_one();
        run(microseconds(100));
    }
    run(milliseconds(5));
    EXPECT_EQ(in_background, 15);
    EXPECT_EQ(client->endpoint->calls_pending(), 0U);
    EXPECT_EQ(count(CallStatus::Ok), results.size());
    check();
}

// The jobs before them free less memory than one of them needs. The others wait in their blocks.
TEST_F(ScalerpcBackground, RequestsThatWaitForAThreadHaveRoomForTheirAnswers) {
    begin_with_threads(small(64), 32);
    ASSERT_TRUE(server->endpoint->set_background_handler(kBrief, echo, &in_background, 32).ok());
    ASSERT_TRUE(server->endpoint->set_background_handler(kSlow, echo, &in_background, 200).ok());
    leave_memory(2048);
    post(0, 32, kBrief);
    post(1, 32, kBrief);
    run(milliseconds(2));
    for (std::size_t i = 2; i < sessions.size(); ++i) {
        post(i, 32, kSlow);
    }
    run(milliseconds(5));
    for (int i = 0; i < 100; ++i) {
        (void)threads->run_one();
        run(microseconds(100));
    }
    EXPECT_EQ(client->endpoint->calls_pending(), 0U);
    EXPECT_EQ(count(CallStatus::Ok), 2U + 30U);
    EXPECT_EQ(in_background, 2 + 30);
    EXPECT_EQ(counted().answers_given_up, 0U);
    check();
    give_memory_back();
}

// Until then the client does not know that its slice goes on, and announces requests by its entry.
TEST_F(ScalerpcBackground, TimeInWhichARequestWaitsForTheFirstAnswerOfItsSliceCounts) {
    begin_with_threads(small(64), 1);
    server->endpoint->set_handler(
        kEcho,
        [](void* context, const RequestOf& request) {
            static_cast<std::vector<rpc::KeptRequest>*>(context)->push_back(request.keep());
        },
        &kept);
    ASSERT_TRUE(server->endpoint->set_background_handler(kSlow, echo, &in_background, 200).ok());
    post(0);
    run(microseconds(200));
    ASSERT_EQ(kept.size(), 1U);
    const std::array<std::uint8_t, 32> bytes{};
    Call timed;
    timed.type = kSlow;
    timed.request = bytes;
    timed.deadline = now + milliseconds(1);
    ASSERT_EQ(client->endpoint->post(sessions[0], timed, now).verdict, PostVerdict::Posted);
    run(microseconds(800));
    EXPECT_TRUE(server->endpoint->refuse(kept[0], now));
    run(microseconds(100));
    EXPECT_TRUE(threads->has_job(0)) << "it came in time";
    run(microseconds(300));
    EXPECT_TRUE(threads->run_one());
    EXPECT_EQ(in_background, 0) << "it is over";
    run(milliseconds(1));
    EXPECT_EQ(counted().requests_expired, 1U);
}

}  // namespace
}  // namespace cairn::scalerpc
