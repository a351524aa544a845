// Background handlers on threads: what only they can do.
#include "tests/unit/erpc/background_fixture.hpp"

namespace cairn::erpc {
namespace {

TEST_F(Background, ThreadsAnswerManyCallsUnderLossAndDoublingEachRunOnce) {
    open(3, 6);
    client->port.fate = [](std::uint64_t number) { return number % 5 == 2 ? 0 : number % 7 == 3 ? 2 : 1; };
    server->port.fate = [](std::uint64_t number) { return number % 4 == 1 ? 0 : number % 6 == 5 ? 2 : 1; };
    for (std::uint64_t tag = 0; tag < 200; ++tag) {
        post(tag, tag % 10 == 0 ? 5000 : 20 + tag);
    }
    run_until_answered(200);
    expect_answered(200);
    EXPECT_EQ(executions, 200);
    expect_all_returned();
}

TEST_F(Background, ALongJobHoldsUpNoOtherThreadsJobs) {
    open(2, 8);
    held = true;
    post(1);
    run(milliseconds(1));
    begun.acquire();
    held = false;
    for (std::uint64_t tag = 2; tag < 6; ++tag) {
        post(tag);
    }
    run_until_answered(4);
    EXPECT_EQ(results.count(1), 0U);
    go_on.release();
    run_until_answered(5);
    expect_answered(5);
    expect_all_returned();
}

TEST_F(Background, AnEndpointThatEndsWaitsForTheHandlerThatRuns) {
    open(1, 8);
    held = true;
    post(1);
    post(2);
    run(milliseconds(1));
    begun.acquire();
    std::atomic<bool> over{false};
    std::thread releaser([this, &over] {
        held = false;
        over = true;
        go_on.release();
    });
    server->endpoint.reset();
    EXPECT_TRUE(over);
    EXPECT_LE(executions, 2);  // the second one may just have begun
    EXPECT_EQ(server->pool->live(), 0U);
    releaser.join();
}

}  // namespace
}  // namespace cairn::erpc
