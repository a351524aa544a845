// SyncCall, AsyncCall and PollCompletion.
#include "rpc/scalerpc/batch_calls.hpp"

#include <algorithm>
#include <set>

#include "tests/unit/scalerpc/many_clients.hpp"

namespace cairn::scalerpc {
namespace {

class ScalerpcBatchCalls : public ManyClients {
protected:
    void begin_with(std::uint32_t clients) {
        begin(small(16), clients);
        calls.emplace(*client->endpoint, *client->worker);
        for (rpc::MsgBuffer& answer : answers) {
            answer = client->pool.allocate(64);
        }
    }
    BatchCall one(std::size_t session, std::size_t number, std::uint8_t type = kEcho) {
        BatchCall call;
        call.session = sessions[session];
        call.call.type = type;
        tag_of_request[number] = number;
        call.call.request = {reinterpret_cast<const std::uint8_t*>(&tag_of_request[number]), sizeof(std::uint64_t)};
        call.call.response = &answers[number];
        call.call.tag = number;
        return call;
    }
    std::set<std::uint64_t> poll_all(CallStatus status = CallStatus::Ok) {
        std::set<std::uint64_t> ended;
        while (const auto completed = calls->poll_completion()) {
            EXPECT_EQ(completed->status, status);
            EXPECT_TRUE(ended.insert(completed->tag).second);
            if (status == CallStatus::Ok) {
                EXPECT_EQ(tag_of(completed->response->span()), completed->tag);
            }
        }
        return ended;
    }
    // Returns a clock: time goes on with each look, and the server takes its turns.
    std::function<Instant()> clock() {
        return [this] {
            now = now + microseconds(5);
            server->turn(now);
            return now;
        };
    }
    ~ScalerpcBatchCalls() override { calls.reset(); }

    std::array<std::uint64_t, 32> tag_of_request{};
    std::array<rpc::MsgBuffer, 32> answers{};
    std::optional<BatchCalls> calls;
};

TEST_F(ScalerpcBatchCalls, ABatchGoesToManyAndEachAnswerIsCollectedOnce) {
    begin_with(3);
    std::vector<BatchCall> batch;
    for (std::size_t i = 0; i < 24; ++i) {
        batch.push_back(one(i % 3, i));
    }
    EXPECT_EQ(calls->async_call(batch, now), 24U);
    EXPECT_EQ(calls->under_way(), 24U);
    EXPECT_FALSE(calls->poll_completion().has_value());
    run(milliseconds(3));
    EXPECT_EQ(calls->under_way(), 0U);
    EXPECT_EQ(poll_all().size(), 24U);
    EXPECT_FALSE(calls->poll_completion().has_value());
}

TEST_F(ScalerpcBatchCalls, NeighboursOfABatchAreOneWrite) {
    begin_with(1);
    EXPECT_EQ(calls->async_call(std::vector<BatchCall>{one(0, 0)}, now), 1U);
    run(milliseconds(1));
    const std::uint64_t before = client->port.sent();
    EXPECT_EQ(calls->async_call(std::vector<BatchCall>{one(0, 1), one(0, 2), one(0, 3)}, now), 3U);
    client->turn(now);
    EXPECT_EQ(client->port.sent(), before + 1);
    run(milliseconds(1));
    EXPECT_EQ(poll_all().size(), 4U);
}

TEST_F(ScalerpcBatchCalls, ASyncCallReturnsWithItsAnswer) {
    begin_with(2);
    const BatchCall call = one(1, 5);
    const Completed completed = calls->sync_call(call.session, call.call, clock());
    EXPECT_EQ(completed.status, CallStatus::Ok);
    EXPECT_EQ(completed.tag, 5U);
    EXPECT_EQ(tag_of(completed.response->span()), 5U);
    EXPECT_GT(completed.latency, Duration{});
    EXPECT_FALSE(calls->poll_completion().has_value());
}

TEST_F(ScalerpcBatchCalls, ASyncCallLeavesTheAnswersOfBatchesToBePolled) {
    begin_with(2);
    EXPECT_EQ(calls->async_call(std::vector<BatchCall>{one(0, 0), one(0, 1)}, now), 2U);
    const BatchCall call = one(1, 5);
    EXPECT_EQ(calls->sync_call(call.session, call.call, clock()).tag, 5U);
    run(milliseconds(1));
    EXPECT_EQ(poll_all(), (std::set<std::uint64_t>{0, 1}));
}

TEST_F(ScalerpcBatchCalls, WhatIsNotPostedIsSaid) {
    begin_with(1);
    BatchCall unknown = one(0, 1);
    unknown.session = SessionId{99};
    EXPECT_EQ(calls->async_call(std::vector<BatchCall>{one(0, 0), unknown, one(0, 2)}, now), 1U);
    EXPECT_EQ(calls->sync_call(unknown.session, unknown.call, clock()).status, CallStatus::Disconnected);
    BatchCall large = one(0, 3);
    const std::vector<std::uint8_t> bytes(4096);
    large.call.request = bytes;
    EXPECT_EQ(calls->sync_call(large.session, large.call, clock()).status, CallStatus::RequestTooLong);
    run(milliseconds(1));
    EXPECT_EQ(poll_all(), (std::set<std::uint64_t>{0}));
}

TEST_F(ScalerpcBatchCalls, ASessionThatEndsCompletesItsCalls) {
    begin_with(2);
    std::vector<BatchCall> batch;
    for (std::size_t i = 0; i < 10; ++i) {
        batch.push_back(one(0, i, kKeep));
    }
    EXPECT_EQ(calls->async_call(batch, now), 10U);
    run(milliseconds(1));
    client->endpoint->disconnect(sessions[0], now);
    EXPECT_EQ(poll_all(CallStatus::Disconnected).size(), 10U);
}

// Calls of an object that has ended get no completion, and their places are used again.
TEST_F(ScalerpcBatchCalls, ItsEndCancelsWhatIsUnderWay) {
    begin_with(1);
    std::vector<BatchCall> batch;
    for (std::size_t i = 0; i < 10; ++i) {
        batch.push_back(one(0, i, kKeep));
    }
    EXPECT_EQ(calls->async_call(batch, now), 10U);
    run(milliseconds(1));
    calls.reset();
    EXPECT_EQ(client->endpoint->calls_pending(), 0U);
    run(milliseconds(1));
    calls.emplace(*client->endpoint, *client->worker);
    requests.clear();
    for (const RequestHandle& handle : kept) {
        (void)server->endpoint->answer(handle, {}, now);
    }
    run(milliseconds(1));
    EXPECT_FALSE(calls->poll_completion().has_value());
    EXPECT_EQ(calls->async_call(std::vector<BatchCall>{one(0, 11)}, now), 1U);
    run(milliseconds(1));
    EXPECT_EQ(poll_all(), (std::set<std::uint64_t>{11}));
}

}  // namespace
}  // namespace cairn::scalerpc
