// Background handlers, and types that take longer than a slice.
#include <algorithm>

#include "tests/support/take_all.hpp"
#include "tests/unit/scalerpc/many_clients.hpp"

namespace cairn::scalerpc {
namespace {

constexpr std::uint8_t kSlow = 9;
constexpr std::uint8_t kBrief = 10;
Instant fake_time{1'000'000};  // NOLINT: what the endpoint's clock shows

class ScalerpcBackground : public ManyClients {
protected:
    ScalerpcBackground() {
        rpc::BackgroundConfig config;
        config.stepped = true;
        config.jobs_max = 2;
        threads = rpc::BackgroundPool::create(config).value();
    }
    ~ScalerpcBackground() override { server.reset(); }  // before its threads
    // Only the server has threads.
    void begin_with_threads(EndpointConfig config, std::uint32_t clients) {
        begin(config, 0);
        config.background = threads.get();
        server = std::make_unique<Host>("10.0.0.2", 22, config);
        client = std::make_unique<Host>("10.0.0.1", 11, small(64));
        client->port.join(server->port);
        server->port.join(client->port);
        ASSERT_TRUE(server->endpoint->listen(kService).ok());
        server->endpoint->set_handler(
            kEcho,
            [](void*, const RequestOf& request) {
                EXPECT_TRUE(request.endpoint.answer(request.handle, request.payload, request.now));
            },
            nullptr);
        for (std::uint32_t i = 0; i < clients; ++i) {
            sessions.push_back(
                client->endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), kService, now).value());
            run(microseconds(100));
        }
        run(milliseconds(5));
    }
    static void echo(void* context, rpc::BackgroundRequest& request) {
        ++*static_cast<int*>(context);
        const std::span<std::uint8_t> room = request.reserve(static_cast<std::uint32_t>(request.payload().size()));
        std::copy(request.payload().begin(), request.payload().end(), room.begin());
    }

    // Leaves so much of the server's memory, in one piece.
    void leave_memory(std::uint32_t bytes) {
        rpc::MsgBuffer left = server->pool.allocate(bytes);
        others = rpc::test::take_all(server->pool);
        server->pool.release(left);
    }
    void give_memory_back() {
        for (rpc::MsgBuffer& each : others) {
            server->pool.release(each);
        }
    }

    std::unique_ptr<rpc::BackgroundPool> threads;
    std::vector<rpc::MsgBuffer> others;
    int in_background = 0;
    int in_worker = 0;
};

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

// They wait while others use their blocks.
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

// The jobs before them give back less than one of them needs. Those without room wait in their blocks.
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

// What lies behind them in their sessions waits too, whether it was read or written.
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

// Two of them have the jobs, the next one waits without end.
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

TEST_F(ScalerpcBackground, ATypeThatIsAnsweredAfterItsSliceGoesToAThread) {
    begin_with_threads(small(64), 30);
    server->endpoint->set_handler(
        kSlow,
        [](void* context, const RequestOf& request) {
            static_cast<std::vector<rpc::KeptRequest>*>(context)->push_back(request.keep());
        },
        &kept);
    ASSERT_TRUE(server->endpoint->set_legacy_handler(kSlow, echo, &in_background, 200).ok());
    again = true;
    for (std::size_t i = 1; i < sessions.size(); ++i) {
        post(i);
    }
    post(0, 64, kSlow);
    run(milliseconds(3));
    again = false;
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_TRUE(server->endpoint->refuse(kept[0], now));
    run(milliseconds(3));
    post(0, 64, kSlow);
    run(milliseconds(3));
    EXPECT_EQ(kept.size(), 1U);
    (void)threads->run_one();
    run(milliseconds(3));
    EXPECT_EQ(in_background, 1);
    EXPECT_EQ(client->endpoint->calls_pending(), 0U);
}

// Until then the client does not know that its slice goes on, and tells of requests by its entry.
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

TEST_F(ScalerpcBackground, AHandlerThatTakesLongerThanASliceRunsOnAThreadFromThenOn) {
    EndpointConfig config = small(64);
    config.clock = [] { return fake_time; };
    begin_with_threads(config, 1);
    server->endpoint->set_handler(
        kSlow,
        [](void* context, const RequestOf& request) {
            ++*static_cast<int*>(context);
            fake_time = fake_time + (request.payload[0] == 3 ? microseconds(101) : microseconds(99));
            request.endpoint.answer(request.handle, request.payload, request.now);
        },
        &in_worker);
    ASSERT_TRUE(server->endpoint->set_legacy_handler(kSlow, echo, &in_background, 200).ok());
    for (int i = 0; i < 5; ++i) {
        post(0, 64, kSlow);
        run(milliseconds(1));
        (void)threads->run_one();
        run(milliseconds(1));
    }
    EXPECT_EQ(in_worker, 3);
    EXPECT_EQ(in_background, 2);
    EXPECT_EQ(count(CallStatus::Ok), 5U);
}

}  // namespace
}  // namespace cairn::scalerpc
