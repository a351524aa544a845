// Requests that wait for a thread, at a fake server.
#include <gtest/gtest.h>

#include <map>

#include "rpc/common/request_jobs.hpp"

namespace cairn::rpc {
namespace {

class AnyServer {
public:
    struct Type {
        BackgroundHandler background = nullptr;
        void* context = nullptr;
        std::uint32_t response_bytes_max = 0;
    };

    AnyServer() {
        type_.background = [](void*, BackgroundRequest&) {};
    }
    [[nodiscard]] bool keeps(const RequestHandle& /*handle*/) {
        ++looks;
        return true;
    }
    bool expire(const RequestHandle& handle) {
        ++ended[handle.request_number];
        return true;
    }
    bool decline(const RequestHandle& /*handle*/) { return true; }
    bool answer(const RequestHandle& handle, std::span<const std::uint8_t> /*message*/) {
        ++ended[handle.request_number];
        return true;
    }
    [[nodiscard]] const Type& type_of(std::uint8_t /*type*/) const { return type_; }

    std::uint64_t looks = 0;  // at requests
    std::map<std::uint64_t, int> ended;

private:
    Type type_;
};

class RequestJobsTest : public testing::Test {
protected:
    void add(std::uint64_t number, Instant deadline = Instant::never()) {
        ASSERT_TRUE(jobs.add({{SessionId{1}, number}, 1, {}, deadline, 0}));
    }
    static std::unique_ptr<BackgroundPool> one_thread() {
        BackgroundConfig config;
        config.stepped = true;
        config.jobs_max = 1;
        return BackgroundPool::create(config).value();
    }

    std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(1U << 20U);
    MsgPool pool{memory};
    telemetry::Counter executed;
    std::unique_ptr<BackgroundPool> threads = one_thread();
    AnyServer server;
    RequestJobs<AnyServer> jobs{server, pool, threads.get(), executed};
    Instant now{1'000'000};
};

// In each turn the deadline of another request passes. Such requests end soon, without a look at all others each time.
TEST_F(RequestJobsTest, ManyThatWaitCostLittleWhileDeadlinesPass) {
    constexpr std::uint64_t kWaiting = 1000;
    constexpr std::uint64_t kTurns = 100;
    for (std::uint64_t i = 0; i <= kWaiting; ++i) {
        add(i);  // a thread works on one of them
    }
    for (std::uint64_t turn = 1; turn <= kTurns; ++turn) {
        add(kWaiting + turn, now + microseconds(5));
        now = now + microseconds(10);
        jobs.on_turn(now);
    }
    EXPECT_LT(server.looks, 5 * kWaiting);
    now = now + milliseconds(2);
    jobs.on_turn(now);
    EXPECT_EQ(server.ended.size(), kTurns);
    EXPECT_EQ(server.ended.begin()->first, kWaiting + 1);
}

TEST_F(RequestJobsTest, FewThatWaitAreEndedAtOnce) {
    add(1);
    add(2);
    add(3, now + microseconds(5));
    now = now + microseconds(10);
    jobs.on_turn(now);
    EXPECT_EQ(server.ended, (std::map<std::uint64_t, int>{{3, 1}}));
}

}  // namespace
}  // namespace cairn::rpc
