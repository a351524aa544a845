// Clients of cairn-rpcbench over a wire in memory and in virtual time: by rate, and as fast as answers come.
#include "apps/rpcbench/clients.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/unit/erpc/bench_hosts.hpp"

namespace cairn::rpcbench {
namespace {

TEST(BenchArrivals, HaveExponentialIntervals) {
    constexpr int kIntervals = 20000;
    Arrivals arrivals({1, 2}, 1000, Instant{});
    std::vector<double> intervals;
    for (Instant before{}; intervals.size() < kIntervals; before = arrivals.due(), arrivals.advance()) {
        intervals.push_back(static_cast<double>((arrivals.due() - before).ns));
    }
    double sum = 0;
    double squares = 0;
    for (const double each : intervals) {
        sum += each;
        squares += each * each;
    }
    const double mean = sum / kIntervals;
    EXPECT_NEAR(mean, 1000, 30);
    EXPECT_NEAR(squares / kIntervals / (mean * mean), 2, 0.1) << "the variance is the square of the mean";
    const auto longer = std::count_if(intervals.begin(), intervals.end(), [](double each) { return each > 3000; });
    EXPECT_NEAR(static_cast<double>(longer) / kIntervals, 0.0498, 0.006);
}

TEST(BenchArrivals, OfOneKeyAreTheSameAndOfAnotherAreNot) {
    Arrivals first({1, 2}, 1000, Instant{});
    Arrivals again({1, 2}, 1000, Instant{});
    Arrivals other({1, 3}, 1000, Instant{});
    int alike = 0;
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(first.due(), again.due());
        alike += first.due() == other.due() ? 1 : 0;
        first.advance();
        again.advance();
        other.advance();
    }
    EXPECT_LT(alike, 3);
}

class BenchClients : public BenchHosts {
protected:
    static constexpr std::uint32_t kClients = 20;

    BenchClients() {
        step = microseconds(20);
        server.endpoint->set_handler(
            kEcho,
            [](void*, const erpc::Request& request) {
                EXPECT_TRUE(request.endpoint.answer(request.handle, request.payload, request.now));
            },
            nullptr);
        for (std::uint32_t i = 0; i < kClients; ++i) {
            sessions.push_back(client.connect(server, now));
        }
        options.sessions = options.clients.count = kClients;
        run(milliseconds(20));
    }
    void begin() {
        options.window = options.clients.count * options.clients.batch;
        BenchHosts::begin(std::make_unique<ClientsOf<erpc::Endpoint>>(options, *client.endpoint, *client.pool, 1.0,
                                                                      std::uint16_t{0}));
    }
    [[nodiscard]] double completed() const { return static_cast<double>(load->figures().completed()); }
};

TEST_F(BenchClients, BeginAsManyCallsAsARateSays) {
    options.rate_per_s = 20000;
    begin();
    run(milliseconds(500));
    finish();
    EXPECT_NEAR(completed(), 10000, 400);  // four standard deviations
    EXPECT_EQ(load->figures().not_begun(), 0U);
    EXPECT_EQ(load->figures().failed() + load->figures().unfinished(), 0U);
    EXPECT_NEAR(load->figures().rate_mops(), 0.02, 0.001);
}

TEST_F(BenchClients, ShareARateWhateverTheirBatchAndHoweverManyAreActive) {
    for (const std::uint32_t batch : {1U, 4U}) {
        for (const double active : {100.0, 25.0}) {
            options.rate_per_s = 20000;
            options.clients.batch = batch;
            options.clients.active_percent = active;
            begin();
            run(milliseconds(250));
            finish();
            EXPECT_NEAR(completed(), 5000, 600) << batch << " at a time, " << active << " percent";
        }
    }
}

// Calls that were due while the server stood still are all made, at once. Their latency counts from the time when they
// were due.
TEST_F(BenchClients, DropNoCallThatIsLateAndCountFromWhenItWasDue) {
    options.rate_per_s = 20000;
    begin();
    run(milliseconds(40));
    halted = true;
    run(milliseconds(40));
    halted = false;
    run(milliseconds(120));
    finish();
    EXPECT_NEAR(completed(), 4000, 260);
    EXPECT_EQ(load->figures().not_begun(), 0U);
    // A fifth of the calls were due in these 40 ms, and wait for half of them on average.
    EXPECT_GT(load->figures().latency_ns().percentile(0.9), 15'000'000U);
    EXPECT_GT(load->figures().latency_ns().max(), 38'000'000U);
    EXPECT_LT(load->figures().latency_ns().percentile(0.5), 1'000'000U);
}

TEST_F(BenchClients, WhatIsDueAndHasNotBegunAtTheEndIsCounted) {
    options.rate_per_s = 20000;
    begin();
    halted = true;
    run(milliseconds(200));
    finish();
    EXPECT_EQ(load->figures().unfinished(), kClients) << "one call of each client is under way";
    EXPECT_NEAR(static_cast<double>(load->figures().not_begun()), 4000 - kClients, 300);
}

TEST_F(BenchClients, WithoutARateGoOnAtOnceOrAfterAThought) {
    begin();
    run(milliseconds(20));
    EXPECT_EQ(client.endpoint->calls_pending(), kClients);
    finish();
    EXPECT_GT(completed(), 2000);
    options.clients.think_us = 10'000;
    begin();
    run(milliseconds(105));
    finish();
    EXPECT_NEAR(completed(), 11 * kClients, kClients);
}

TEST_F(BenchClients, ThatWaitEndWithTheLoad) {
    options.rate_per_s = 1;  // no client's first call is due within the test
    begin();
    run(milliseconds(10));
    EXPECT_NE(load->next_due(), Instant::never());
    finish();
    EXPECT_EQ(load->next_due(), Instant::never());
    EXPECT_EQ(load->figures().not_begun(), 0U);
}

}  // namespace
}  // namespace cairn::rpcbench
