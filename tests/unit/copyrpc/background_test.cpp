// Background handlers of copyrpc: requests wait for threads in order, and answers find their calls.
#include "tests/unit/copyrpc/two_hosts.hpp"

namespace cairn::copyrpc {
namespace {

constexpr std::uint8_t kSlow = 9;

struct Pool {
    Pool(bool stepped, std::uint32_t jobs_per_thread) {
        rpc::BackgroundConfig config;
        config.stepped = stepped;
        config.jobs_max = 2;
        config.jobs_per_thread = jobs_per_thread;
        pool = rpc::BackgroundPool::create(config).value();
    }
    [[nodiscard]] EndpointConfig config() const {
        EndpointConfig config;
        config.background = pool.get();
        return config;
    }
    std::unique_ptr<rpc::BackgroundPool> pool;
};

// Only the server has background handlers. The client shares its configuration and must not share its pool.
class CopyrpcBackground : public testing::Test {
protected:
    explicit CopyrpcBackground(bool stepped = true, std::uint32_t jobs_per_thread = 1)
        : threads(stepped, jobs_per_thread) {
        client.port.join(server->port);
        server->port.join(client.port);
        EXPECT_TRUE(server->endpoint->listen(kService).ok());
        const Status set = server->endpoint->set_background_handler(
            kSlow,
            [](void* context, rpc::BackgroundRequest& request) {
                ++*static_cast<std::atomic<int>*>(context);
                const std::span<std::uint8_t> room =
                    request.reserve(static_cast<std::uint32_t>(request.payload().size()));
                std::transform(request.payload().begin(),
                               request.payload().begin() + static_cast<std::ptrdiff_t>(room.size()), room.begin(),
                               [](std::uint8_t octet) { return static_cast<std::uint8_t>(octet + 1); });
            },
            &executed, 500);
        EXPECT_TRUE(set.ok());
        const auto made = client.endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), kService, now);
        session = made.value();
        run(milliseconds(5));
    }
    void turn() {
        client.turn(now);
        server->turn(now);
        now = now + microseconds(20);
    }
    void run(Duration span) {
        for (const Instant end = now + span; now < end;) {
            turn();
        }
    }
    void post(std::uint64_t tag, std::size_t bytes = 40, std::uint8_t type = kSlow) {
        requests[tag].assign(bytes, static_cast<std::uint8_t>(tag));
        Call call;
        call.type = type;
        call.request = requests[tag];
        call.context = this;
        call.tag = tag;
        call.response = response;
        call.deadline = deadline;
        call.completion = [](void* context, const rpc::CallResult& result) {
            auto& self = *static_cast<CopyrpcBackground*>(context);
            self.results.emplace_back(result.tag, result.status);
            self.answers[result.tag].assign(result.response.begin(), result.response.end());
        };
        ASSERT_EQ(client.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
    }

    Pool threads;
    std::atomic<int> executed{0};
    Host client{"10.0.0.1", 11, {}};
    std::optional<Host> server{std::in_place, "10.0.0.2", 22, threads.config()};
    Instant now{1'000'000'000};
    SessionId session{};
    rpc::MsgBuffer* response = nullptr;
    Instant deadline = Instant::never();
    std::map<std::uint64_t, std::vector<std::uint8_t>> requests;
    std::map<std::uint64_t, std::vector<std::uint8_t>> answers;
    std::vector<std::pair<std::uint64_t, CallStatus>> results;
};

// The thread has a copy, so the request's blocks are free for the caller.
TEST_F(CopyrpcBackground, ARequestThatAThreadHasStopsNobody) {
    server->endpoint->set_handler(
        kEcho,
        [](void*, const Request& request) {
            EXPECT_TRUE(request.endpoint.answer(request.handle, request.payload, request.now));
        },
        nullptr);
    post(1);
    for (std::uint64_t tag = 2; tag < 2000; ++tag) {
        post(tag, 100, kEcho);
    }
    run(milliseconds(50));
    EXPECT_EQ(results.size(), 1998U);
    EXPECT_TRUE(threads.pool->run_one());
    run(milliseconds(1));
    EXPECT_EQ(results.size(), 1999U);
}

TEST_F(CopyrpcBackground, ARequestThatWaitedForAJobLetsOthersGoOnOnceItHasOne) {
    server->endpoint->set_handler(
        kEcho, [](void*, const Request& request) { (void)request.endpoint.refuse(request.handle, request.now); },
        nullptr);
    for (std::uint64_t tag = 1; tag <= 2; ++tag) {
        post(tag);
    }
    session = client.endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), kService, now).value();
    run(milliseconds(5));
    post(3);
    for (std::uint64_t tag = 4; tag < 1000; ++tag) {
        post(tag, 100, kEcho);
    }
    run(milliseconds(50));
    EXPECT_LT(results.size(),
              900U);  // the third of three requests holds its session's ring: both jobs belong to another session
    EXPECT_TRUE(threads.pool->run_one());
    run(milliseconds(50));
    EXPECT_EQ(results.size(), 997U);
}

TEST_F(CopyrpcBackground, RequestsWaitForAJobInTheirOrder) {
    for (std::uint64_t tag = 1; tag <= 10; ++tag) {
        post(tag);
    }
    run(milliseconds(1));
    EXPECT_EQ(executed, 0);
    EXPECT_EQ(server->endpoint->requests_kept(), 10U);
    for (int i = 0; i < 10; ++i) {
        ASSERT_TRUE(threads.pool->run_one());
        run(milliseconds(1));
        ASSERT_EQ(results.size(), static_cast<std::size_t>(i) + 1);
    }
    for (std::uint64_t tag = 1; tag <= 10; ++tag) {
        EXPECT_EQ(results[tag - 1], (std::pair{tag, CallStatus::Ok}));
        EXPECT_EQ(answers[tag], std::vector<std::uint8_t>(40, static_cast<std::uint8_t>(tag + 1)));
    }
    EXPECT_EQ(server->endpoint->requests_kept(), 0U);
}

TEST_F(CopyrpcBackground, ARequestThatItsCallerHasGivenUpIsNotExecuted) {
    deadline = now + milliseconds(2);
    for (std::uint64_t tag = 1; tag <= 5; ++tag) {
        post(tag);
    }
    run(milliseconds(4));
    EXPECT_EQ(results, (std::vector<std::pair<std::uint64_t, CallStatus>>{{1, CallStatus::DeadlinePassed},
                                                                          {2, CallStatus::DeadlinePassed},
                                                                          {3, CallStatus::DeadlinePassed},
                                                                          {4, CallStatus::DeadlinePassed},
                                                                          {5, CallStatus::DeadlinePassed}}));
    deadline = Instant::never();
    post(6);
    run(milliseconds(1));
    int runs = 0;
    for (; threads.pool->run_one(); ++runs) {
        run(milliseconds(1));
    }
    EXPECT_EQ(runs, 2) << "what waits for a thread is over without one";
    EXPECT_EQ(executed, 1) << "the last; a thread had the first one before its deadline, and had not begun it";
    EXPECT_EQ(server->endpoint->statistics().requests_expired, 5U);
    EXPECT_EQ(results.size(), 6U);
    EXPECT_EQ(results.back(), (std::pair<std::uint64_t, CallStatus>{6, CallStatus::Ok}));
    EXPECT_EQ(client.endpoint->statistics().late_answers, 5U);
}

class CopyrpcBackgroundQueue : public CopyrpcBackground {
protected:
    CopyrpcBackgroundQueue() : CopyrpcBackground(true, 2) {}
};

TEST_F(CopyrpcBackgroundQueue, AJobThatIsOverWhenItsTurnComesIsNotExecuted) {
    deadline = now + milliseconds(2);
    post(1);
    post(2);
    run(milliseconds(1));
    EXPECT_TRUE(threads.pool->run_one());
    run(milliseconds(3));
    ASSERT_EQ(results.size(), 2U);
    EXPECT_EQ(results[0], (std::pair<std::uint64_t, CallStatus>{1, CallStatus::Ok}));
    EXPECT_TRUE(threads.pool->run_one()) << "the thread had it in time";
    EXPECT_EQ(executed, 1);
    run(milliseconds(1));
    EXPECT_EQ(results[1], (std::pair<std::uint64_t, CallStatus>{2, CallStatus::DeadlinePassed}));
    EXPECT_EQ(server->endpoint->statistics().requests_expired, 1U);
    EXPECT_EQ(server->endpoint->requests_kept(), 0U);
}

TEST_F(CopyrpcBackground, AnAnswerForWhichItsCallerHasNoRoomEndsTheCall) {
    std::array<std::uint8_t, 16> memory{};
    rpc::MsgBuffer room;
    room.data = memory.data();
    room.capacity = memory.size();
    response = &room;
    post(1, 300);
    run(milliseconds(1));
    ASSERT_TRUE(threads.pool->run_one());
    run(milliseconds(1));
    ASSERT_EQ(results.size(), 1U);
    EXPECT_EQ(results[0].second, CallStatus::ResponseTooLong);
}

TEST_F(CopyrpcBackground, AnEmptyRequestHasAnEmptyAnswer) {
    post(1, 0);
    run(milliseconds(1));
    ASSERT_TRUE(threads.pool->run_one());
    run(milliseconds(1));
    EXPECT_EQ(results.at(0).second, CallStatus::Ok);
    EXPECT_TRUE(answers[1].empty());
}

TEST_F(CopyrpcBackground, JobsOfASessionThatEndsComeToNobody) {
    const std::uint64_t before = server->pool.live();
    for (std::uint64_t tag = 1; tag <= 5; ++tag) {
        post(tag);
    }
    run(milliseconds(1));
    client.endpoint->disconnect(session, now);
    run(milliseconds(5));
    EXPECT_EQ(server->endpoint->requests_kept(), 0U);
    while (threads.pool->run_one()) {
        run(milliseconds(1));
    }
    EXPECT_EQ(executed, 2) << "those that had a job";
    for (int i = 0; i < 2000; ++i, now = now + milliseconds(5)) {
        turn();
    }
    EXPECT_EQ(server->pool.live(), before - 2) << "and the session's two rings";
}

TEST_F(CopyrpcBackground, AnEndpointThatEndsTakesItsJobsBack) {
    for (std::uint64_t tag = 1; tag <= 5; ++tag) {
        post(tag);
    }
    run(milliseconds(1));
    server->endpoint.reset();
    EXPECT_EQ(server->pool.live(), 0U);
    EXPECT_FALSE(threads.pool->run_one());
}

class CopyrpcBackgroundThread : public CopyrpcBackground {
protected:
    CopyrpcBackgroundThread() : CopyrpcBackground(false) {}
};

TEST_F(CopyrpcBackgroundThread, ManyRequestsAreAnswered) {
    for (std::uint64_t tag = 1; tag <= 200; ++tag) {
        post(tag, tag * 2);
    }
    while (results.size() < 200) {
        turn();
    }
    for (const auto& [tag, status] : results) {
        EXPECT_EQ(status, CallStatus::Ok);
        EXPECT_EQ(answers[tag], std::vector<std::uint8_t>(tag * 2, static_cast<std::uint8_t>(tag + 1)));
    }
}

}  // namespace
}  // namespace cairn::copyrpc
