// What becomes of requests that their handlers do not answer at once, in any RPC system: typed tests, as those of
// rpc_promises.hpp. A system runs them by
//
//     INSTANTIATE_TYPED_TEST_SUITE_P(Erpc, RpcKeptRequests, ErpcPair);
#pragma once

#include "tests/support/rpc_fixture.hpp"

namespace cairn::rpc::test {

template <class Pair>
class RpcKeptRequests : public RpcPromises<Pair> {};

// Answers requests of an even size alone.
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
    this->kept.erase(this->kept.begin(), this->kept.begin() + 2);  // what is moved from is nobody's
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

REGISTER_TYPED_TEST_SUITE_P(RpcKeptRequests, AHandlerThatForgetsItsRequestEndsTheCall,
                            AKeptRequestThatIsDroppedEndsItsCall, ACoroutineThatEndsWithoutAnAnswerEndsTheCall,
                            AKeptRequestMayOutliveItsSession);

}  // namespace cairn::rpc::test
