// A client and a server on a wire in memory, in virtual time: the basis of the tests of an endpoint's promises. Their
// handler answers with the request's bytes plus one each.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "tests/unit/erpc/host.hpp"

namespace cairn::erpc {

constexpr std::uint8_t kEcho = 7;

class TwoHosts : public testing::Test {
protected:
    void SetUp() override {
        client.port.join(server.port);
        server.port.join(client.port);
        server.endpoint->set_handler(kEcho, &TwoHosts::echo, this);
        client.endpoint->set_session_callback(&TwoHosts::on_session, this);
    }
    void run(Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(50)) {
            client.turn(now);
            server.turn(now);
        }
    }
    SessionId connect() { return client.connect(server, now); }
    Posted post(SessionId session, std::uint64_t tag, Instant deadline = Instant::never(), std::size_t bytes = 0) {
        bytes = bytes != 0 ? bytes : 8 + tag % 300;
        requests[tag] = std::vector<std::uint8_t>(bytes, static_cast<std::uint8_t>(tag));
        std::memcpy(requests[tag].data(), &tag, sizeof(tag));
        Call call;
        call.type = kEcho;
        call.request = requests[tag];
        call.completion = &TwoHosts::completed;
        call.context = this;
        call.tag = tag;
        call.deadline = deadline;
        return client.endpoint->post(session, call, now);
    }
    // Answers with the request's bytes plus one each.
    static void echo(void* context, const Request& request) {
        auto& self = *static_cast<TwoHosts*>(context);
        self.last = request.handle;
        std::uint64_t tag = 0;
        std::memcpy(&tag, request.payload.data(), sizeof(tag));
        ++self.executed[tag];
        self.held.emplace_back(request.keep(),
                               std::vector<std::uint8_t>(request.payload.begin(), request.payload.end()));
        if (!self.hold) {
            self.answer_held(request.now);
        }
    }
    void answer_held(Instant at) {
        for (auto& [handle, bytes] : held) {
            const std::span<std::uint8_t> answer =
                server.endpoint->reserve(handle, static_cast<std::uint32_t>(bytes.size()));
            for (std::size_t i = 0; i < answer.size(); ++i) {
                answer[i] = static_cast<std::uint8_t>(bytes[i] + 1);
            }
            server.endpoint->respond(handle, at);
        }
        held.clear();
    }
    static void completed(void* context, const CallResult& result) {
        auto& self = *static_cast<TwoHosts*>(context);
        ASSERT_EQ(self.results.count(result.tag), 0U) << "completed twice";
        self.results[result.tag] = result.status;
        if (result.status == CallStatus::Ok) {
            const std::vector<std::uint8_t>& request = self.requests[result.tag];
            ASSERT_EQ(result.response.size(), request.size());
            for (std::size_t i = 0; i < request.size(); ++i) {
                ASSERT_EQ(result.response[i], static_cast<std::uint8_t>(request[i] + 1));
            }
        }
    }
    static void on_session(void* context, SessionId, SessionEvent event, RefuseReason) {
        static_cast<TwoHosts*>(context)->events.push_back(event);
    }
    void expect_all(std::uint64_t calls, CallStatus status) {
        ASSERT_EQ(results.size(), calls);
        for (const auto& [tag, got] : results) {
            EXPECT_EQ(got, status) << tag;
        }
    }
    void expect_each_executed_at_most_once() {
        for (const auto& [tag, times] : executed) {
            EXPECT_EQ(times, 1) << tag;
        }
    }

    Host client{"10.0.0.1", 11};
    Host server{"10.0.0.2", 22};
    Instant now{1'000'000'000};
    bool hold = false;
    std::map<std::uint64_t, std::vector<std::uint8_t>> requests;
    std::map<std::uint64_t, CallStatus> results;
    std::map<std::uint64_t, int> executed;
    std::vector<std::pair<rpc::KeptRequest, std::vector<std::uint8_t>>> held;
    std::vector<SessionEvent> events;
    RequestHandle last{};  // the last executed request
};

}  // namespace cairn::erpc
