// How calls, sessions and endpoints end, in any RPC system: typed tests, as in rpc_promises.hpp. A system runs them by
//
//     INSTANTIATE_TYPED_TEST_SUITE_P(Erpc, RpcEndings, ErpcPair);
#pragma once

#include "tests/support/rpc_fixture.hpp"

namespace cairn::rpc::test {

template <class Pair>
class RpcEndings : public RpcPromises<Pair> {};

TYPED_TEST_SUITE_P(RpcEndings);

// Another session has the number of the one that ended: the old name reaches no session.
TYPED_TEST_P(RpcEndings, TheNameOfASessionThatEndedNamesNoOther) {
    const SessionId first = this->pair.connect();
    this->post(first, 1, kKeep);
    this->pair.run(milliseconds(1));
    ASSERT_EQ(this->kept.size(), 1U);
    const RequestHandle handle = this->kept.front();
    SessionId again = first;
    for (int i = 0; i < 20 && (again == first || again.number() != first.number()); ++i) {
        this->client().disconnect(again, this->pair.now);
        for (int waited = 0; waited < 3000 && this->client().sessions_open() != 0; ++waited) {
            this->pair.run(milliseconds(1));
        }
        again = this->pair.connect();
    }
    ASSERT_EQ(again.number(), first.number());
    EXPECT_NE(again, first);
    EXPECT_EQ(this->post(first, 2).verdict, PostVerdict::NoSuchSession);
    this->client().disconnect(first, this->pair.now);
    EXPECT_TRUE(this->server().reserve(handle, 3).empty());
    EXPECT_FALSE(this->server().respond(handle, this->pair.now));
    EXPECT_EQ(this->post(again, 3).verdict, PostVerdict::Posted);
    this->pair.run(milliseconds(1));
    EXPECT_EQ(this->results.at(3), CallStatus::Ok);
}

// A coroutine that retries when its call fails ends with its endpoint: its call fails once, then its retry is refused.
TYPED_TEST_P(RpcEndings, WhoTriesAgainAtTheEndpointsEndIsRefused) {
    const SessionId session = this->pair.connect();
    std::vector<CallStatus> told;
    int ended = 0;
    using Client = typename TypeParam::Endpoint;
    const auto insist = [](Client& from, SessionId over, const Instant& now, std::vector<CallStatus>& into,
                           int& ends) -> Task<> {
        const std::array<std::uint8_t, 8> request{};
        Call what;
        what.type = kKeep;
        what.request = request;
        for (int tries = 0; tries < 3; ++tries) {
            const CallResult result = co_await call(from, over, what, now);
            into.push_back(result.status);
        }
        ++ends;
    };
    constexpr int kTasks = 20;  // some wait for room
    for (int i = 0; i < kTasks; ++i) {
        start(insist(this->client(), session, this->pair.now, told, ended));
    }
    this->pair.run(milliseconds(1));
    EXPECT_TRUE(told.empty());
    this->pair.end_client();
    EXPECT_EQ(told, std::vector(3 * kTasks, CallStatus::Disconnected));
    EXPECT_EQ(ended, kTasks);
}

TYPED_TEST_P(RpcEndings, AnEndpointIsNotDestroyedWithinItsOwnCallback) {
    const SessionId session = this->pair.connect();
    Call last;
    last.type = kEcho;
    last.context = &this->pair;
    last.completion = [](void* context, const CallResult&) { static_cast<TypeParam*>(context)->end_client(); };
    ASSERT_EQ(this->client().post(session, last, this->pair.now).verdict, PostVerdict::Posted);
    EXPECT_DEATH(this->pair.run(milliseconds(1)), "depth_ == 0");
    EXPECT_DEATH(this->client().disconnect(session, this->pair.now), "depth_ == 0");
}

// A latency counts all of a call's wait for its session, for room and for credits.
TYPED_TEST_P(RpcEndings, ALatencyIsAllThatACallerWaits) {
    const SessionId session = this->pair.connect();
    this->client().keep_latency(kKeep);
    constexpr std::uint64_t kCalls = 200;  // more than are under way at a time, in any system
    const Instant posted = this->pair.now;
    for (std::uint64_t tag = 1; tag <= kCalls; ++tag) {
        ASSERT_EQ(this->post(session, tag, kKeep).verdict, PostVerdict::Posted);
    }
    std::size_t answered = 0;
    while (this->results.size() < kCalls && answered <= kCalls) {
        this->pair.run(milliseconds(1));
        ASSERT_LT(answered, this->kept.size());
        EXPECT_TRUE(this->server().respond(this->kept[answered++], this->pair.now));
        this->pair.run(microseconds(200));
        for (const auto& [tag, latency] : std::exchange(this->latencies, {})) {
            EXPECT_GE(latency, this->pair.now - posted - microseconds(200)) << tag;
            EXPECT_LE(latency, this->pair.now - posted) << tag;
        }
    }
    ASSERT_EQ(this->results.size(), kCalls);
    EXPECT_EQ(this->client().latency_ns(kKeep)->count(), kCalls);
    EXPECT_GE(this->client().latency_ns(kKeep)->max(), static_cast<std::uint64_t>(milliseconds(kCalls - 1).ns));
    // Calls that end otherwise have waited, too.
    this->post(session, 1001, kKeep);
    const CallId id = this->post(session, 1002, kKeep).id;
    this->pair.run(milliseconds(3));
    EXPECT_TRUE(this->client().cancel(id, this->pair.now));
    this->client().disconnect(session, this->pair.now);
    EXPECT_EQ(this->latencies.at(1001), milliseconds(3));
    EXPECT_EQ(this->latencies.at(1002), milliseconds(3));
}

// The program's clock goes on after the last turn, whose time is the endpoint's last one.
TYPED_TEST_P(RpcEndings, ALatencyThatEndsWithTheEndpointIsNotNegative) {
    const SessionId session = this->pair.connect();
    using Client = typename TypeParam::Endpoint;
    std::vector<Duration> waited;
    const auto wait = [](Client& from, SessionId over, const Instant& now, std::vector<Duration>& into) -> Task<> {
        const std::array<std::uint8_t, 8> request{};
        Call what;
        what.type = kKeep;
        what.request = request;
        const CallResult result = co_await call(from, over, what, now);
        into.push_back(result.latency);
    };
    start(wait(this->client(), session, this->pair.now, waited));
    this->pair.run(milliseconds(3));
    this->pair.now = this->pair.now + microseconds(100);
    start(wait(this->client(), session, this->pair.now, waited));
    EXPECT_TRUE(waited.empty());
    this->pair.end_client();
    ASSERT_EQ(waited.size(), 2U);
    EXPECT_GE(waited[0], milliseconds(3) - microseconds(100));
    EXPECT_EQ(waited[1], Duration{});
}

REGISTER_TYPED_TEST_SUITE_P(RpcEndings, TheNameOfASessionThatEndedNamesNoOther, WhoTriesAgainAtTheEndpointsEndIsRefused,
                            AnEndpointIsNotDestroyedWithinItsOwnCallback, ALatencyIsAllThatACallerWaits,
                            ALatencyThatEndsWithTheEndpointIsNotNegative);

}  // namespace cairn::rpc::test
