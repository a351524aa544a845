// The measurements of cairn-rpcbench, over a wire in memory and in virtual time.
#include "tests/unit/erpc/bench_hosts.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "apps/common/pattern.hpp"

namespace cairn::rpcbench {
namespace {

constexpr std::uint32_t kNowhere = 0xffffffffU;

class BenchLoadTest : public BenchHosts {
protected:
    void SetUp() override {
        server.endpoint->set_handler(kEcho, &BenchLoadTest::serve, this);
        server.endpoint->set_handler(kChecked, &BenchLoadTest::serve, this);
        sessions.push_back(client.connect(server, now));
        options.window = 4;
        options.request_bytes = 100;
        options.response_bytes = 100;
        run(milliseconds(5));
    }
    void begin() {
        BenchHosts::begin(std::make_unique<LoadOf<erpc::Endpoint>>(options, *client.endpoint, *client.pool, 1.0));
    }
    // Answers as the program does, except for a byte of the request or the answer that changes on its way.
    static void serve(void* context, const erpc::Request& request) {
        auto& self = *static_cast<BenchLoadTest*>(context);
        std::vector<std::uint8_t> got(request.payload.begin(), request.payload.end());
        if (self.changed_request < got.size()) {
            got[self.changed_request] ^= 1U;
        }
        const std::span<std::uint8_t> answer = request.endpoint.reserve(request.handle, self.answer_bytes);
        app::fill_pattern(answer, app::digest(got));
        if (self.changed_answer < answer.size()) {
            answer[self.changed_answer] ^= 0x80U;
        }
        request.endpoint.respond(request.handle, request.now);
    }

    std::uint32_t answer_bytes = 100;
    std::uint32_t changed_request = kNowhere;
    std::uint32_t changed_answer = kNowhere;
};

TEST_F(BenchLoadTest, AClosedLoopKeepsItsWindowOutstandingAndEndsItAll) {
    begin();
    run(milliseconds(20));
    EXPECT_EQ(client.endpoint->calls_pending(), options.window);
    finish();
    EXPECT_GT(load->figures().completed(), 100U);
    EXPECT_EQ(load->figures().completed(), load->figures().latency_ns().count());
    EXPECT_EQ(load->figures().failed() + load->figures().unfinished(), 0U);
    EXPECT_GT(load->figures().rate_mops(), 0);
    EXPECT_TRUE(load->figures().failure().empty());
}

TEST_F(BenchLoadTest, CallsThatNeverEndAreCounted) {
    begin();
    run(milliseconds(5));
    halted = true;
    run(milliseconds(1));  // the calls that were answered already, and new ones
    finish();
    EXPECT_EQ(load->figures().unfinished(), options.window);
}

TEST_F(BenchLoadTest, AnOpenLoadBeginsAsManyCallsAsAreDue) {
    options.rate_per_s = 10000;
    begin();
    run(milliseconds(100));
    finish();
    EXPECT_NEAR(static_cast<double>(load->figures().completed()), 1000, 2);
    EXPECT_EQ(load->figures().not_begun(), 0U);
}

// A server that halts for a fifth of the time slows a fifth of the calls, though few were under way.
TEST_F(BenchLoadTest, LatencyOfAnOpenLoadCountsFromWhenACallWasDue) {
    options.rate_per_s = 10000;
    begin();
    run(milliseconds(40));
    halted = true;
    run(milliseconds(20));
    halted = false;
    run(milliseconds(40));
    finish();
    EXPECT_NEAR(static_cast<double>(load->figures().completed()), 1000, 20);
    EXPECT_GT(load->figures().latency_ns().percentile(0.9), 5'000'000U);
    EXPECT_GT(load->figures().latency_ns().max(), 18'000'000U);
}

TEST_F(BenchLoadTest, CallsThatWereDueAndCouldNotBeginAreCounted) {
    options.rate_per_s = 10000;
    begin();
    halted = true;
    run(milliseconds(20));
    finish();
    EXPECT_EQ(load->figures().unfinished(), options.window);
    EXPECT_NEAR(static_cast<double>(load->figures().not_begun()), 200 - options.window, 2);
}

TEST_F(BenchLoadTest, VerifiesWhatComesBack) {
    options.check = true;
    begin();
    run(milliseconds(20));
    finish();
    EXPECT_GT(load->figures().checked(), 100U);
    EXPECT_TRUE(load->figures().failure().empty());
}

TEST_F(BenchLoadTest, NoticesEveryByteThatChangedOnItsWay) {
    options.check = true;
    for (const bool there : {true, false}) {
        for (std::uint32_t byte = 0; byte < 100; ++byte) {
            (there ? changed_request : changed_answer) = byte;
            begin();
            run(milliseconds(1));
            EXPECT_FALSE(load->figures().failure().empty()) << (there ? "request " : "answer ") << byte;
            changed_request = changed_answer = kNowhere;
            finish();
            run(milliseconds(5));
        }
    }
}

TEST_F(BenchLoadTest, AnswersOfAnotherSizeThanIsReckonedWithAreNamed) {
    answer_bytes = 99;
    begin();
    run(milliseconds(1));
    EXPECT_NE(load->figures().failure().find("--resp"), std::string::npos) << load->figures().failure();
}

}  // namespace
}  // namespace cairn::rpcbench
