// The fate of requests that their handlers do not answer at once, in any RPC system: typed tests, as in
// rpc_promises.hpp. A system runs them by
//
//     INSTANTIATE_TYPED_TEST_SUITE_P(Erpc, RpcKeptRequests, ErpcPair);
#pragma once

#include "tests/support/rpc_fixture.hpp"

namespace cairn::rpc::test {

template <class Pair>
class RpcKeptRequests : public RpcPromises<Pair> {};

// Answers only requests of an even size.
template <class Endpoint>
Task<> answer_even(void*, Request<Endpoint> request) {
    if (request.payload.size() % 2 == 0) {
        (void)request.endpoint.respond(request.handle, request.now);
    }
    co_return;
}

TYPED_TEST_SUITE_P(RpcKeptRequests);

TYPED_TEST_P(RpcKeptRequests, AHandlerThatForgetsItsRequestEndsTheCall) {
    const SessionId session = this->pair.connect();
    using Server = typename TypeParam::Endpoint;
    this->server().set_handler(
        kEcho, [](void*, const Request<Server>& request) { (void)request.endpoint.reserve(request.handle, 3); },
        nullptr);
    for (std::uint64_t tag = 1; tag <= 40; ++tag) {
        this->post(session, tag);
        this->pair.run(milliseconds(1));
        EXPECT_EQ(this->results.at(tag), CallStatus::AnswerLost) << tag;
    }
}

TYPED_TEST_P(RpcKeptRequests, AKeptRequestThatIsDroppedEndsItsCall) {
    const SessionId session = this->pair.connect();
    for (std::uint64_t tag = 1; tag <= 4; ++tag) {
        this->post(session, tag, kKeep);
    }
    this->pair.run(milliseconds(1));
    ASSERT_EQ(this->kept.size(), 4U);
    KeptRequest first = std::move(this->kept[0]);
    KeptRequest second;
    second = std::move(this->kept[1]);
    this->kept.erase(this->kept.begin(), this->kept.begin() + 2);  // a moved-from request has no owner
    EXPECT_TRUE(this->server().respond(first, this->pair.now));
    first.drop();  // it was answered
    second.drop();
    this->kept.pop_back();
    this->pair.run(milliseconds(20));
    ASSERT_EQ(this->results.size(), 3U);
    EXPECT_EQ(this->results.at(1), CallStatus::Ok);
    EXPECT_EQ(this->results.at(2), CallStatus::AnswerLost);
    EXPECT_EQ(this->results.at(4), CallStatus::AnswerLost);
    EXPECT_TRUE(this->server().respond(this->kept[0], this->pair.now));
    this->pair.run(milliseconds(20));
    EXPECT_EQ(this->results.at(3), CallStatus::Ok);
}

TYPED_TEST_P(RpcKeptRequests, ACoroutineThatEndsWithoutAnAnswerEndsTheCall) {
    const SessionId session = this->pair.connect();
    using Server = typename TypeParam::Endpoint;
    this->server().set_handler(kEcho, coroutine_handler<&answer_even<Server>, Server>, nullptr);
    this->post(session, 1, kEcho, 10);
    this->post(session, 2, kEcho, 11);
    this->pair.run(milliseconds(20));
    EXPECT_EQ(this->results.at(1), CallStatus::Ok);
    EXPECT_EQ(this->results.at(2), CallStatus::AnswerLost);
}

TYPED_TEST_P(RpcKeptRequests, AKeptRequestMayOutliveItsSession) {
    const SessionId session = this->pair.connect();
    this->post(session, 1, kKeep);
    this->pair.run(milliseconds(1));
    ASSERT_EQ(this->kept.size(), 1U);
    this->client().disconnect(session, this->pair.now);
    this->pair.run(milliseconds(20));
    EXPECT_FALSE(this->server().respond(this->kept[0], this->pair.now));
    this->kept.clear();
    this->pair.run(milliseconds(20));
    EXPECT_EQ(this->results.size(), 1U);
}

// The answer comes at once or later, and there was room before or not.
TYPED_TEST_P(RpcKeptRequests, AnAnswerThatFindsNoRoomIsLost) {
    const SessionId session = this->pair.connect();
    this->server().set_handler(
        kUnknown,
        [](void*, const Request<typename TypeParam::Endpoint>& request) {
            EXPECT_EQ(request.endpoint.reserve(request.handle, 10).size(), 10U);
            for (std::uint8_t& each : request.endpoint.reserve(request.handle, kMaxMessageBytes + 1)) {
                each = 1;
            }
            EXPECT_TRUE(request.endpoint.respond(request.handle, request.now));
        },
        nullptr);
    this->post(session, 1, kUnknown);
    this->post(session, 2, kKeep);
    this->post(session, 3, kKeep);
    this->pair.run(milliseconds(1));
    ASSERT_EQ(this->kept.size(), 2U);
    std::vector<MsgBuffer> all = take_all(this->pair.server_pool());
    for (const KeptRequest& each : this->kept) {
        EXPECT_TRUE(this->server().reserve(each, 3000).empty());
    }
    EXPECT_TRUE(this->server().respond(this->kept[0], this->pair.now));
    for (MsgBuffer& each : all) {
        this->pair.server_pool().release(each);
    }
    EXPECT_EQ(this->server().reserve(this->kept[1], 3000).size(), 3000U);
    EXPECT_TRUE(this->server().respond(this->kept[1], this->pair.now));
    this->pair.run(milliseconds(20));
    EXPECT_EQ(this->results.at(1), CallStatus::AnswerLost);
    EXPECT_EQ(this->results.at(2), CallStatus::AnswerLost);
    EXPECT_EQ(this->results.at(3), CallStatus::Ok) << "there was room in the end";
}

TYPED_TEST_P(RpcKeptRequests, AHandlerDeclinesWhatItDoesNotExecute) {
    const SessionId session = this->pair.connect();
    using Server = typename TypeParam::Endpoint;
    this->server().set_handler(
        kUnknown, [](void*, const Request<Server>& request) { EXPECT_TRUE(request.decline()); }, nullptr);
    for (std::uint64_t tag = 1; tag <= 40; ++tag) {
        this->post(session, tag, kUnknown, tag == 40 ? 3000 : 40);
        this->pair.run(milliseconds(1));
        EXPECT_EQ(this->results.at(tag), CallStatus::NotExecuted) << tag;
    }
    EXPECT_EQ(this->server().statistics().requests_handled, 0U);
    EXPECT_EQ(this->server().statistics().requests_declined, 40U);
}

TYPED_TEST_P(RpcKeptRequests, ARequestThatIsKeptCanBeDeclined) {
    const SessionId session = this->pair.connect();
    this->post(session, 1, kKeep);
    this->pair.run(milliseconds(1));
    ASSERT_EQ(this->kept.size(), 1U);
    EXPECT_TRUE(this->kept[0].decline());
    EXPECT_FALSE(this->kept[0].decline());
    this->pair.run(milliseconds(20));
    EXPECT_EQ(this->results.at(1), CallStatus::NotExecuted);
}

TYPED_TEST_P(RpcKeptRequests, AnEmptyAnswerNeedsNoMemory) {
    const SessionId session = this->pair.connect();
    this->post(session, 1, kKeep);
    this->pair.run(milliseconds(1));
    ASSERT_EQ(this->kept.size(), 1U);
    std::vector<MsgBuffer> all = take_all(this->pair.server_pool());
    EXPECT_TRUE(this->server().answer(this->kept[0], {}, this->pair.now));
    this->pair.run(milliseconds(20));
    EXPECT_EQ(this->results.at(1), CallStatus::Ok);
    EXPECT_TRUE(this->responses.at(1).empty());
    for (MsgBuffer& each : all) {
        this->pair.server_pool().release(each);
    }
}

// A peer's request would find no thread to execute it.
TYPED_TEST_P(RpcKeptRequests, ABackgroundHandlerNeedsThreads) {
    const BackgroundHandler handler = [](void*, BackgroundRequest&) {};
    const Status none = this->server().set_background_handler(kUnknown, handler, nullptr, 8);
    ASSERT_FALSE(none.ok());
    EXPECT_NE(none.error().what.find("type 9"), std::string::npos);
    EXPECT_NE(none.error().remedy.find("BackgroundPool"), std::string::npos);
    this->post(this->pair.connect(), 1, kUnknown);
    this->pair.run(milliseconds(20));
    EXPECT_EQ(this->results.at(1), CallStatus::NoHandler);
}

REGISTER_TYPED_TEST_SUITE_P(RpcKeptRequests, AHandlerThatForgetsItsRequestEndsTheCall,
                            AKeptRequestThatIsDroppedEndsItsCall, ACoroutineThatEndsWithoutAnAnswerEndsTheCall,
                            AKeptRequestMayOutliveItsSession, AnAnswerThatFindsNoRoomIsLost,
                            AHandlerDeclinesWhatItDoesNotExecute, ARequestThatIsKeptCanBeDeclined,
                            AnEmptyAnswerNeedsNoMemory, ABackgroundHandlerNeedsThreads);

}  // namespace cairn::rpc::test
