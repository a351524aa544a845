// Requests whose deadlines pass while they wait for their slice.
#include "tests/unit/scalerpc/many_clients.hpp"

namespace cairn::scalerpc {
namespace {

constexpr std::uint8_t kTimed = 40;

class ScalerpcDeadlines : public ManyClients {
protected:
    void begin_timed(std::uint32_t clients) {
        begin(small(static_cast<std::uint16_t>(clients)), clients);
        server->endpoint->set_handler(
            kTimed,
            [](void* context, const RequestOf& request) {
                auto& self = *static_cast<ScalerpcDeadlines*>(context);
                self.latest = std::max(self.latest, request.now - self.deadline_of[tag_of(request.payload)]);
                ++self.in_time;
                EXPECT_TRUE(request.endpoint.answer(request.handle, request.payload, request.now));
            },
            this);
    }
    void post_timed(std::size_t session, Duration within) {
        const std::uint64_t tag = ++tags;
        std::vector<std::uint8_t>& request = requests[tag];
        request.resize(32);
        std::memcpy(request.data(), &tag, sizeof(tag));
        deadline_of[tag] = now + within;
        Call call;
        call.type = kTimed;
        call.request = request;
        call.context = this;
        call.tag = tag;
        call.deadline = now + within;
        call.completion = [](void* context, const rpc::CallResult& result) {
            static_cast<ScalerpcDeadlines*>(context)->results[result.tag] = result.status;
        };
        ASSERT_EQ(client->endpoint->post(sessions[session], call, now).verdict, PostVerdict::Posted);
    }

    std::map<std::uint64_t, Instant> deadline_of;
    Duration latest{};  // the latest execution of a request after its deadline
    int in_time = 0;
};

// When a call has ended, the client rewrites its staged request. It cannot reach requests that the server has READ by
// then.
TEST_F(ScalerpcDeadlines, WhatExpiresBetweenItsReadAndItsSliceIsNotExecuted) {
    begin_timed(90);
    again = true;
    for (std::size_t i = 0; i < 60; ++i) {
        post(i);
    }
    run(milliseconds(2));
    for (std::uint32_t round = 0; round < 400; ++round) {
        for (std::size_t i = 60; i < 90; i += 5) {
            post_timed(i, microseconds(20 + round * 37 % 400));
        }
        run(microseconds(round * 53 % 300));
    }
    again = false;
    run(milliseconds(10));
    EXPECT_GT(in_time, 400);
    EXPECT_GT(counted().requests_expired, 100U);
    EXPECT_LE(latest, microseconds(15)) << "a few turns: there is no common clock";
}

}  // namespace
}  // namespace cairn::scalerpc
