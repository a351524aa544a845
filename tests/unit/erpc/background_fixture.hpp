// A client and a server with background handlers, for tests that step the jobs and tests with threads.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <semaphore>
#include <thread>

#include "rpc/common/background.hpp"
#include "tests/unit/erpc/host.hpp"

namespace cairn::erpc {

constexpr std::uint8_t kSlow = 9;
constexpr std::uint32_t kAnswerMost = 8192;

// A client and a server with background handlers: an answer is the request's bytes plus one each.
class Background : public testing::Test {
protected:
    // Opens both; the test steps the jobs.
    void open_stepped(std::uint32_t jobs_max, std::uint32_t jobs_per_thread = 1, std::uint32_t threads = 1) {
        open(threads, jobs_max, jobs_per_thread, true);
    }
    void open(std::uint32_t threads, std::uint32_t jobs_max, std::uint32_t jobs_per_thread = 1, bool stepped = false) {
        BackgroundConfig config;
        config.threads = threads;
        config.stepped = stepped;
        config.jobs_max = jobs_max;
        config.jobs_per_thread = jobs_per_thread;
        background = BackgroundPool::create(config).value();
        server.emplace("10.0.0.2", 22, background.get());
        client.emplace("10.0.0.1", 11);
        client->port.join(server->port);
        server->port.join(client->port);
        EXPECT_TRUE(server->endpoint->set_background_handler(kSlow, &Background::work, this, kAnswerMost).ok());
        session = client->connect(*server, now);
        run(milliseconds(1));
    }
    void turn() {
        client->turn(now);
        server->turn(now);
        now = now + microseconds(50);
    }
    void run(Duration span) {
        for (const Instant end = now + span; now < end;) {
            turn();
        }
    }
    // Runs until this many answers have come. Threads do not advance virtual time: only the test's own limit ends this.
    void run_until_answered(std::size_t answers) {
        while (results.size() < answers) {
            turn();
            std::this_thread::yield();
        }
    }
    void post(std::uint64_t tag, std::size_t bytes = 20) {
        requests[tag].resize(bytes);
        for (std::size_t i = 0; i < bytes; ++i) {
            requests[tag][i] = static_cast<std::uint8_t>(tag + i / 7);
        }
        Call call;
        call.type = kSlow;
        call.request = requests[tag];
        call.completion = &Background::completed;
        call.context = this;
        call.tag = tag;
        ASSERT_EQ(client->endpoint->post(session, call, now).verdict, PostVerdict::Posted);
    }
    static void work(void* context, BackgroundRequest& request) {
        auto& self = *static_cast<Background*>(context);
        ++self.executions;
        if (self.held) {
            self.begun.release();
            self.go_on.acquire();
        }
        const std::span<std::uint8_t> answer = request.reserve(static_cast<std::uint32_t>(request.payload().size()));
        std::transform(request.payload().begin(), request.payload().end(), answer.begin(),
                       [](std::uint8_t byte) { return static_cast<std::uint8_t>(byte + 1); });
    }
    static void completed(void* context, const CallResult& result) {
        auto& self = *static_cast<Background*>(context);
        ASSERT_EQ(self.results.count(result.tag), 0U) << "completed twice";
        self.results[result.tag] = result.status;
        if (result.status == CallStatus::Ok) {
            std::vector<std::uint8_t> expected = self.requests[result.tag];
            std::for_each(expected.begin(), expected.end(), [](std::uint8_t& byte) { ++byte; });
            ASSERT_TRUE(std::equal(expected.begin(), expected.end(), result.response.begin(), result.response.end()));
        }
    }
    void expect_answered(std::size_t calls) {
        ASSERT_EQ(results.size(), calls);
        for (const auto& [tag, status] : results) {
            EXPECT_EQ(status, CallStatus::Ok) << tag;
        }
    }
    [[nodiscard]] std::uint64_t drops(Drop reason) { return server->endpoint->statistics().of(reason); }
    // Ends the server, and checks that all its memory is free again.
    void expect_all_returned() {
        server->endpoint.reset();
        EXPECT_EQ(server->pool->live(), 0U);
    }

    std::map<std::uint64_t, std::vector<std::uint8_t>> requests;
    std::map<std::uint64_t, CallStatus> results;
    std::atomic<int> executions{0};
    std::atomic<bool> held{false};
    std::counting_semaphore<> begun{0};
    std::counting_semaphore<> go_on{0};
    std::unique_ptr<BackgroundPool> background;
    std::optional<Host> server;
    std::optional<Host> client;
    Instant now{1'000'000'000};
    SessionId session{};
};

}  // namespace cairn::erpc
