// Background handlers that the test steps one job at a time, so that each moment has exact consequences.
#include "tests/unit/erpc/background_fixture.hpp"

namespace cairn::erpc {
namespace {

TEST_F(Background, ARequestWaitsForItsJobAndIsAnsweredInTheTurnAfter) {
    open_stepped(4);
    post(1);
    run(milliseconds(1));
    EXPECT_TRUE(results.empty());
    EXPECT_TRUE(background->run_one());
    EXPECT_FALSE(background->run_one());
    run(microseconds(150));
    expect_answered(1);
    expect_all_returned();
}

TEST_F(Background, CopiesOfARequestNeverRunItAgainNeitherDuringItsJobNorAfter) {
    open_stepped(4);
    client->port.fate = [](std::uint64_t) { return 3; };
    server->port.fate = [](std::uint64_t number) { return number % 3 == 0 ? 1 : 0; };
    for (std::uint64_t tag = 0; tag < 12; ++tag) {
        post(tag);
        run(milliseconds(30));  // the request is sent again several times meanwhile
        EXPECT_EQ(executions, static_cast<int>(tag));
        EXPECT_TRUE(background->run_one());
        EXPECT_FALSE(background->run_one());
        run(milliseconds(300));
    }
    expect_answered(12);
    EXPECT_EQ(executions, 12);
    EXPECT_GT(drops(Drop::DuplicateBusy), 0U);
    EXPECT_GT(server->endpoint->statistics().responses_resent, 0U);
    expect_all_returned();
}

TEST_F(Background, WithAllJobsOutRequestsStayUnexecutedUntilTheirClientAsksAgain) {
    open_stepped(2, 2);
    for (std::uint64_t tag = 0; tag < 4; ++tag) {
        post(tag);
    }
    run(milliseconds(1));
    EXPECT_EQ(server->endpoint->statistics().requests_handled, 2U);
    EXPECT_EQ(drops(Drop::BackgroundFull), 2U);
    while (background->run_one()) {
    }
    run(milliseconds(1));
    expect_answered(2);
    run(milliseconds(20));
    while (background->run_one()) {
    }
    run(milliseconds(20));
    expect_answered(4);
    EXPECT_EQ(executions, 4);
    expect_all_returned();
}

TEST_F(Background, WithoutMemoryForTheAnswerARequestIsPutOffAndNothingIsKept) {
    open_stepped(1);
    const Status more = server->endpoint->set_background_handler(kSlow, &Background::work, this, 2U << 20U);
    ASSERT_TRUE(more.ok()) << "more than there is now";
    post(1);
    run(milliseconds(10));
    EXPECT_GT(drops(Drop::NoBuffer), 0U);
    EXPECT_EQ(server->pool->live(), 0U);
    ASSERT_TRUE(server->endpoint->set_background_handler(kSlow, &Background::work, this, kAnswerMost).ok());
    run(milliseconds(200));
    EXPECT_TRUE(background->run_one());
    run(milliseconds(1));
    expect_answered(1);
    expect_all_returned();
}

TEST_F(Background, ALargeRequestIsHandedOverInTheBufferItArrivedIn) {
    open_stepped(4);
    post(1, 5000);
    run(milliseconds(2));
    EXPECT_EQ(server->pool->live(), 2U);  // request and room for the answer; no copy
    EXPECT_TRUE(background->run_one());
    run(milliseconds(2));
    expect_answered(1);
    EXPECT_EQ(server->pool->live(), 1U);  // the answer, kept for resending
    expect_all_returned();
}

TEST_F(Background, ALargeRequestThatFindsNoJobIsKeptAndRunOnce) {
    open_stepped(1);
    post(1);
    run(milliseconds(1));
    post(2, 5000);
    client->port.fate = [](std::uint64_t number) { return number % 3 == 0 ? 0 : 2; };
    run(milliseconds(30));
    EXPECT_GT(drops(Drop::BackgroundFull), 0U);
    EXPECT_EQ(server->endpoint->statistics().requests_handled, 1U);
    EXPECT_TRUE(background->run_one());
    run(milliseconds(300));
    EXPECT_TRUE(background->run_one());
    run(milliseconds(300));
    EXPECT_FALSE(background->run_one());
    expect_answered(2);
    EXPECT_EQ(executions, 2);
    expect_all_returned();
}

TEST_F(Background, AnAnswerWhoseSessionEndedMeanwhileIsDroppedAndANewSessionIsServed) {
    open_stepped(4);
    post(1);
    run(milliseconds(1));
    client->endpoint->disconnect(session, now);
    run(milliseconds(5));
    EXPECT_EQ(server->endpoint->sessions_open(), 0U);
    session = client->connect(*server, now);  // perhaps under the same number
    post(2);
    run(milliseconds(5));
    EXPECT_TRUE(background->run_one());  // it belongs to the session that has ended
    run(milliseconds(1));
    EXPECT_EQ(drops(Drop::StaleAnswer), 1U);
    EXPECT_EQ(results.count(2), 0U);
    EXPECT_TRUE(background->run_one());
    run(milliseconds(1));
    EXPECT_EQ(results.at(1), CallStatus::Disconnected);
    EXPECT_EQ(results.at(2), CallStatus::Ok);
    expect_all_returned();
}

TEST_F(Background, AnEndpointThatEndsRunsNoMoreJobsAndTheNextOneTakesThePool) {
    open_stepped(4, 2);
    post(1);
    post(2);  // given to the thread
    post(3);  // waits at the worker
    run(milliseconds(1));
    EXPECT_TRUE(background->run_one());  // finished but not answered
    expect_all_returned();
    EXPECT_EQ(executions, 1);
    server->restart(33, background.get());
    ASSERT_TRUE(server->endpoint->set_background_handler(kSlow, &Background::work, this, kAnswerMost).ok());
    session = client->connect(*server, now);
    post(4);
    run(milliseconds(1));
    EXPECT_TRUE(background->run_one());
    run(milliseconds(1));
    EXPECT_EQ(results.at(4), CallStatus::Ok);
    expect_all_returned();
}

TEST_F(Background, AnAnswerHasNoMoreRoomThanItsTypeWasRegisteredWith) {
    rpc::BackgroundJob job;
    std::array<std::uint8_t, 64> room{};
    room.fill(7);  // content of a former message
    job.response = {room.data(), 0, 64, {}};
    job.response_bytes_max = 48;
    BackgroundRequest request(job);
    EXPECT_EQ(request.reserve(49).data(), nullptr);
    EXPECT_EQ(job.response.bytes, 0U);
    const std::span<std::uint8_t> answer = request.reserve(48);
    EXPECT_EQ(std::vector(answer.begin(), answer.end()), std::vector<std::uint8_t>(48));
    EXPECT_EQ(room[48], 7U);
    answer[0] = 1;
    EXPECT_EQ(request.reserve(3).size(), 3U);
    EXPECT_EQ(job.response.bytes, 3U);
    EXPECT_EQ(request.reserve(4)[0], 1U);
}

TEST_F(Background, LimitsOutOfRangeAreRefused) {
    EXPECT_FALSE(BackgroundPool::create({.threads = 1, .jobs_max = 0}).ok());
    EXPECT_FALSE(BackgroundPool::create({.threads = 0}).ok());
    EXPECT_FALSE(BackgroundPool::create({.threads = 100'000}).ok());
}

TEST_F(Background, AThreadGetsAsManyJobsAsItMayHaveTheOthersFollowInOrder) {
    open_stepped(8, 2);
    for (std::uint64_t tag = 1; tag <= 5; ++tag) {
        post(tag);
        run(milliseconds(1));
    }
    EXPECT_TRUE(background->run_one());
    EXPECT_TRUE(background->run_one());
    EXPECT_FALSE(background->run_one());
    run(milliseconds(1));
    expect_answered(2);
    EXPECT_EQ(results.count(1) + results.count(2), 2U);
    while (executions < 5) {
        background->run_one();
        run(milliseconds(1));
    }
    expect_answered(5);
    expect_all_returned();
}

TEST_F(Background, ThreadsFinishInAnyOrderAndEachCallGetsItsOwnAnswer) {
    open_stepped(8, 1, 3);
    for (std::uint64_t tag = 1; tag <= 4; ++tag) {
        post(tag);
        run(milliseconds(1));
    }
    EXPECT_TRUE(background->run_one(2));  // has the third request
    run(milliseconds(1));
    EXPECT_EQ(results.count(3), 1U);
    EXPECT_EQ(results.size(), 1U);
    EXPECT_TRUE(background->has_job(2)) << "the fourth";
    EXPECT_TRUE(background->run_one(1));
    EXPECT_TRUE(background->run_one(0));
    EXPECT_FALSE(background->has_job(0));
    EXPECT_TRUE(background->run_one(2));
    run(milliseconds(1));
    expect_answered(4);
    expect_all_returned();
}

TEST_F(Background, AWorkerThatSleepsIsWokenOrLooksByItself) {
    open_stepped(4);
    post(1);
    run(milliseconds(1));
    EXPECT_LE(server->endpoint->next_deadline(), now + kScanInterval);
    background->run_one();
    run(milliseconds(1));
    expect_all_returned();
    std::atomic<int> wakes{0};
    BackgroundConfig config;
    config.stepped = true;
    config.wake = [](void* context) { ++*static_cast<std::atomic<int>*>(context); };
    config.wake_context = &wakes;
    const std::unique_ptr<BackgroundPool> waking = BackgroundPool::create(config).value();
    server->restart(44, waking.get());
    ASSERT_TRUE(server->endpoint->set_background_handler(kSlow, &Background::work, this, kAnswerMost).ok());
    session = client->connect(*server, now);
    post(2);
    run(milliseconds(1));
    EXPECT_FALSE(waking->wants_polling());
    EXPECT_TRUE(waking->run_one());
    EXPECT_EQ(wakes, 1);
    expect_all_returned();
}

}  // namespace
}  // namespace cairn::erpc
