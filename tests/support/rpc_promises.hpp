// The promises of every RPC system of Cairn to its users, as typed tests. A system runs them by
//
//     INSTANTIATE_TYPED_TEST_SUITE_P(Erpc, RpcPromises, ErpcPair);
//
// with a pair of hosts: see RpcPromises.
#pragma once

#include "tests/support/rpc_fixture.hpp"

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
    EXPECT_TRUE(this->server().respond(this->kept[0], this->pair.now));  // the client no longer waits for it
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
    EXPECT_EQ(this->results.at(1), CallStatus::NotExecuted);
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
                            AHandleIsAnsweredLaterAndOnce, WhatNobodyAnswersSaysSo,
                            ATypeWhoseAnswersNoMessageCarriesIsNotRegistered, ACallOverASessionThatEndsFails,
                            AResponseLiesInTheCallersBufferIfItFits, LatenciesAreKeptByTypeFromWhenOnTheyAreAskedFor,
                            AMethodCarriesValues, AMethodCarriesWhatHasACodec, AValueOfAnotherSizeIsNoValueOfTheMethod,
                            AFullTableIsAValue);

}  // namespace cairn::rpc::test
