// What every RPC system of Cairn promises its users, as typed tests. A system runs them by
//
//     INSTANTIATE_TYPED_TEST_SUITE_P(Erpc, RpcPromises, ErpcPair);
//
// with a pair of hosts that has: `using Endpoint`, `Endpoint& client()`, `Endpoint& server()`, `SessionId connect()`
// (which returns with the session open), `void run(Duration)` in virtual time, and `Instant now`; of a second client,
// `Endpoint& other()` and `SessionId connect_other()`; `WirePort& server_port()`; and
// `void end_client()`, after which nothing runs any more.
#pragma once

#include <algorithm>

#include "tests/support/rpc_fixture.hpp"
#include "tests/support/wire_port.hpp"

namespace cairn::rpc::test {

TYPED_TEST_SUITE_P(RpcPromises);

TYPED_TEST_P(RpcPromises, EachCallCompletesOnceWithItsOwnResponse) {
    const SessionId session = this->pair.connect();
    for (std::uint64_t tag = 1; tag <= 100; ++tag) {
        ASSERT_EQ(this->post(session, tag, kEcho, tag * 61 % 5000).verdict, PostVerdict::Posted);
    }
    this->pair.run(milliseconds(50));
    ASSERT_EQ(this->results.size(), 100U);
    for (const auto& [tag, status] : this->results) {
        EXPECT_EQ(status, CallStatus::Ok) << tag;
        EXPECT_EQ(this->responses[tag], this->requests[tag]) << tag;
    }
    EXPECT_EQ(this->client().calls_pending(), 0U);
}

TYPED_TEST_P(RpcPromises, ACallEndsAtItsDeadlineAndItsAnswerComesToNobody) {
    const SessionId session = this->pair.connect();
    this->call.deadline = this->pair.now + milliseconds(5);
    this->post(session, 1, kKeep);
    this->pair.run(milliseconds(4));
    EXPECT_TRUE(this->results.empty());
    this->pair.run(milliseconds(4));
    EXPECT_EQ(this->results.at(1), CallStatus::DeadlinePassed);
    ASSERT_EQ(this->kept.size(), 1U);
    EXPECT_TRUE(this->server().respond(this->kept[0], this->pair.now));
    this->pair.run(milliseconds(5));
    EXPECT_EQ(this->results.size(), 1U);
}

TYPED_TEST_P(RpcPromises, ACancelledCallEndsAtOnceAndOnlyOnce) {
    const SessionId session = this->pair.connect();
    const CallId id = this->post(session, 1, kKeep).id;
    this->pair.run(milliseconds(1));
    EXPECT_TRUE(this->client().cancel(id, this->pair.now));
    EXPECT_EQ(this->results.at(1), CallStatus::Cancelled);
    EXPECT_FALSE(this->client().cancel(id, this->pair.now));
    this->post(session, 2);
    EXPECT_FALSE(this->client().cancel(id, this->pair.now)) << "another call has its place";
    ASSERT_EQ(this->kept.size(), 1U);
    EXPECT_TRUE(this->server().respond(this->kept[0], this->pair.now));  // nobody waits for it any more
    this->pair.run(milliseconds(20));
    EXPECT_EQ(this->results.at(2), CallStatus::Ok);
}

TYPED_TEST_P(RpcPromises, AHandleIsAnsweredLaterAndOnce) {
    const SessionId session = this->pair.connect();
    this->post(session, 1, kKeep);
    this->pair.run(milliseconds(1));
    ASSERT_EQ(this->kept.size(), 1U);
    ASSERT_EQ(this->server().reserve(this->kept[0], 3).size(), 3U);
    EXPECT_TRUE(this->server().respond(this->kept[0], this->pair.now));
    EXPECT_FALSE(this->server().respond(this->kept[0], this->pair.now));
    EXPECT_TRUE(this->server().reserve(this->kept[0], 3).empty());
    this->pair.run(milliseconds(1));
    EXPECT_EQ(this->responses.at(1).size(), 3U);
}

// A handler that writes less than it reserved sends zeros, whatever memory it got.
TYPED_TEST_P(RpcPromises, RoomForAnAnswerHoldsNoFormerMessage) {
    constexpr std::uint8_t kSecret = 0xa7;
    const std::vector<std::uint8_t> secret(8, kSecret);
    this->pair.server_port().tap = [&](std::span<const std::uint8_t> datagram, const net::IpAddress& to) {
        const bool tells =
            std::search(datagram.begin(), datagram.end(), secret.begin(), secret.end()) != datagram.end();
        EXPECT_FALSE(tells && to == net::IpAddress::parse("10.0.0.3").value());
    };
    const std::vector<std::uint32_t> sizes{1, 3, 7, 15, 32, 60, 100, 500, 3000, 5000, 5999};
    const SessionId first = this->pair.connect();
    std::uint64_t tag = 0;
    for (const std::uint32_t bytes : sizes) {
        this->post(this->client(), first, ++tag, kEcho, std::vector(bytes, kSecret));
        this->pair.run(milliseconds(1));
        ASSERT_EQ(this->results.at(tag), CallStatus::Ok);
        this->post_lazy(this->client(), first, ++tag, bytes);
        this->pair.run(milliseconds(1));
        EXPECT_EQ(this->responses.at(tag), std::vector<std::uint8_t>(bytes)) << "of the same client";
    }
    this->client().disconnect(first, this->pair.now);
    this->pair.run(milliseconds(5));
    const SessionId second = this->pair.connect_other();
    for (const std::uint32_t bytes : sizes) {
        this->post_lazy(this->other(), second, ++tag, bytes);
        this->post(this->other(), second, ++tag, kKeep, std::vector<std::uint8_t>(40));
        this->pair.run(milliseconds(1));
        EXPECT_EQ(this->responses.at(tag - 1), std::vector<std::uint8_t>(bytes));
        const RequestHandle handle = this->kept.back();
        ASSERT_EQ(this->server().reserve(handle, bytes / 2).size(), bytes / 2);
        ASSERT_EQ(this->server().reserve(handle, bytes).size(), bytes);
        EXPECT_TRUE(this->server().respond(handle, this->pair.now));
        this->pair.run(milliseconds(1));
        EXPECT_EQ(this->responses.at(tag), std::vector<std::uint8_t>(bytes)) << "answered late";
    }
    this->pair.server_port().tap = [](auto, const auto&) {};
}

// A handler that learns late how long its answer is trims the room, or asks for more.
TYPED_TEST_P(RpcPromises, RoomThatIsTrimmedKeepsWhatWasWritten) {
    const SessionId session = this->pair.connect();
    this->post(session, 1, kKeep);
    this->pair.run(milliseconds(1));
    ASSERT_EQ(this->kept.size(), 1U);
    const std::span<std::uint8_t> room = this->server().reserve(this->kept[0], 600);
    ASSERT_EQ(room.size(), 600U);
    std::fill(room.begin(), room.end(), std::uint8_t{5});
    ASSERT_EQ(this->server().reserve(this->kept[0], 2).size(), 2U);
    ASSERT_EQ(this->server().reserve(this->kept[0], 4).size(), 4U);
    EXPECT_TRUE(this->server().respond(this->kept[0], this->pair.now));
    this->pair.run(milliseconds(1));
    EXPECT_EQ(this->responses.at(1), (std::vector<std::uint8_t>{5, 5, 0, 0}));
}

TYPED_TEST_P(RpcPromises, WhatNobodyAnswersSaysSo) {
    const SessionId session = this->pair.connect();
    this->post(session, 1, kUnknown);
    this->post(session, 2, kKeep);
    this->pair.run(milliseconds(20));
    EXPECT_EQ(this->results.at(1), CallStatus::NoHandler);
    ASSERT_EQ(this->kept.size(), 1U);
    EXPECT_TRUE(this->server().refuse(this->kept[0], this->pair.now));
    this->pair.run(milliseconds(20));
    EXPECT_EQ(this->results.at(2), CallStatus::AnswerLost);
}

TYPED_TEST_P(RpcPromises, ATypeWhoseAnswersNoMessageCarriesIsNotRegistered) {
    const Status longer = this->server().set_handler(kUnknown, nullptr, nullptr, 0xffffffff);
    ASSERT_FALSE(longer.ok());
    EXPECT_NE(longer.error().what.find("4294967295 bytes to requests of type 9 "), std::string::npos);
    EXPECT_EQ(longer.error().remedy.find("register "), 0U);
}

TYPED_TEST_P(RpcPromises, ACallOverASessionThatEndsFails) {
    const SessionId session = this->pair.connect();
    for (std::uint64_t tag = 1; tag <= 30; ++tag) {
        this->post(session, tag, kKeep);
    }
    this->pair.run(milliseconds(1));
    this->client().disconnect(session, this->pair.now);
    ASSERT_EQ(this->results.size(), 30U);
    for (const auto& [tag, status] : this->results) {
        EXPECT_EQ(status, CallStatus::Disconnected) << tag;
    }
    EXPECT_EQ(this->post(session, 31).verdict, PostVerdict::NoSuchSession);
}

// A coroutine that tries again when its call fails ends with its endpoint: it is told once, and then refused.
TYPED_TEST_P(RpcPromises, WhoTriesAgainAtTheEndpointsEndIsRefused) {
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

TYPED_TEST_P(RpcPromises, AnEndpointIsNotDestroyedWithinItsOwnCallback) {
    const SessionId session = this->pair.connect();
    Call last;
    last.type = kEcho;
    last.context = &this->pair;
    last.completion = [](void* context, const CallResult&) { static_cast<TypeParam*>(context)->end_client(); };
    ASSERT_EQ(this->client().post(session, last, this->pair.now).verdict, PostVerdict::Posted);
    EXPECT_DEATH(this->pair.run(milliseconds(1)), "depth_ == 0");
    EXPECT_DEATH(this->client().disconnect(session, this->pair.now), "depth_ == 0");
}

TYPED_TEST_P(RpcPromises, AResponseLiesInTheCallersBufferIfItFits) {
    const SessionId session = this->pair.connect();
    std::array<std::uint8_t, 64> memory{};
    MsgBuffer buffer;
    buffer.data = memory.data();
    buffer.capacity = memory.size();
    this->call.response = &buffer;
    this->post(session, 1, kEcho, 50);
    this->pair.run(milliseconds(1));
    EXPECT_EQ(buffer.bytes, 50U);
    EXPECT_EQ(memory[49], 1U);
    this->post(session, 2, kEcho, 200);
    this->pair.run(milliseconds(1));
    EXPECT_EQ(this->results.at(2), CallStatus::ResponseTooLong);
}

TYPED_TEST_P(RpcPromises, LatenciesAreKeptByTypeFromWhenOnTheyAreAskedFor) {
    const SessionId session = this->pair.connect();
    this->post(session, 1);
    this->pair.run(milliseconds(1));
    EXPECT_EQ(this->client().latency_ns(kEcho), nullptr);
    this->client().keep_latency(kEcho);
    this->post(session, 2);
    this->post(session, 3, kUnknown);
    this->pair.run(milliseconds(1));
    ASSERT_NE(this->client().latency_ns(kEcho), nullptr);
    EXPECT_EQ(this->client().latency_ns(kEcho)->count(), 1U);
    EXPECT_EQ(this->client().latency_ns(kUnknown), nullptr);
}

// However long a call waits for its session, for room or for credits.
TYPED_TEST_P(RpcPromises, ALatencyIsAllThatACallerWaits) {
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
    // Those that end otherwise have waited, too.
    this->post(session, 1001, kKeep);
    const CallId id = this->post(session, 1002, kKeep).id;
    this->pair.run(milliseconds(3));
    EXPECT_TRUE(this->client().cancel(id, this->pair.now));
    this->client().disconnect(session, this->pair.now);
    EXPECT_EQ(this->latencies.at(1001), milliseconds(3));
    EXPECT_EQ(this->latencies.at(1002), milliseconds(3));
}

TYPED_TEST_P(RpcPromises, AMethodCarriesValues) {
    const SessionId session = this->pair.connect();
    std::vector<Typed<Color>> got;
    const auto ask = [](TypeParam& hosts, SessionId over, std::vector<Typed<Color>>& into) -> Task<> {
        into.push_back(co_await invoke(hosts.client(), over, kColorOf, Pixel{3, 4}, hosts.now));
    };
    start(ask(this->pair, session, got));
    this->pair.run(milliseconds(1));
    ASSERT_EQ(got.size(), 1U);
    ASSERT_EQ(got[0].status, CallStatus::Ok);
    EXPECT_EQ(got[0].value->value, 3004U);
    EXPECT_EQ(this->picture.asked, 1);
}

TYPED_TEST_P(RpcPromises, AMethodCarriesWhatHasACodec) {
    const SessionId session = this->pair.connect();
    std::vector<Typed<Shouted>> got;
    const auto ask = [](TypeParam& hosts, SessionId over, std::string what,
                        std::vector<Typed<Shouted>>& into) -> Task<> {
        into.push_back(co_await invoke(hosts.client(), over, kShout, what, hosts.now));
    };
    for (const std::string& what : {std::string("aloud"), std::string(), std::string(700, 'x')}) {
        start(ask(this->pair, session, what, got));
        this->pair.run(milliseconds(2));
        ASSERT_EQ(got.back().status, CallStatus::Ok) << what.size();
        EXPECT_EQ(got.back().value->text, what + "!");
    }
    this->picture.shouts_badly = true;
    start(ask(this->pair, session, "x", got));
    this->pair.run(milliseconds(2));
    EXPECT_EQ(got.back().status, CallStatus::BadResponse);
}

TYPED_TEST_P(RpcPromises, AValueOfAnotherSizeIsNoValueOfTheMethod) {
    const SessionId session = this->pair.connect();
    EXPECT_FALSE(Codec<Color>::get(std::array<std::uint8_t, sizeof(Color) - 1>{}).has_value());
    this->post(session, 1, kColorOf.type, sizeof(Pixel) - 1);
    this->pair.run(milliseconds(1));
    EXPECT_EQ(this->results.at(1), CallStatus::AnswerLost);
    EXPECT_EQ(this->picture.asked, 0);
    CallResult longer;
    const std::array<std::uint8_t, sizeof(Color) + 1> bytes{};
    longer.response = bytes;
    EXPECT_EQ(typed<Color>(longer).status, CallStatus::BadResponse);
}

TYPED_TEST_P(RpcPromises, AFullTableIsAValue) {
    const SessionId session = this->pair.connect();
    std::uint64_t tag = 0;
    while (this->post(session, tag + 1, kKeep).verdict == PostVerdict::Posted) {
        ++tag;
        ASSERT_LT(tag, 100'000U);
    }
    EXPECT_EQ(this->post(session, tag + 1, kKeep).verdict, PostVerdict::Full);
    this->client().disconnect(session, this->pair.now);
    EXPECT_EQ(this->results.size(), tag);
}

REGISTER_TYPED_TEST_SUITE_P(RpcPromises, EachCallCompletesOnceWithItsOwnResponse,
                            ACallEndsAtItsDeadlineAndItsAnswerComesToNobody, ACancelledCallEndsAtOnceAndOnlyOnce,
                            AHandleIsAnsweredLaterAndOnce, RoomForAnAnswerHoldsNoFormerMessage,
                            RoomThatIsTrimmedKeepsWhatWasWritten, WhatNobodyAnswersSaysSo,
                            ATypeWhoseAnswersNoMessageCarriesIsNotRegistered, ACallOverASessionThatEndsFails,
                            WhoTriesAgainAtTheEndpointsEndIsRefused, AnEndpointIsNotDestroyedWithinItsOwnCallback,
                            AResponseLiesInTheCallersBufferIfItFits, LatenciesAreKeptByTypeFromWhenOnTheyAreAskedFor,
                            ALatencyIsAllThatACallerWaits, AMethodCarriesValues, AMethodCarriesWhatHasACodec,
                            AValueOfAnotherSizeIsNoValueOfTheMethod, AFullTableIsAValue);

}  // namespace cairn::rpc::test
