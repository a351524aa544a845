// Requests that are kept while others are handled, in any RPC system: typed tests, as in rpc_promises.hpp. A system
// runs them by
//
//     INSTANTIATE_TYPED_TEST_SUITE_P(Erpc, RpcOtherRequests, ErpcPair);
#pragma once

#include "tests/support/rpc_fixture.hpp"

namespace cairn::rpc::test {

// The ways in which a request ends.
enum class Ending : std::uint8_t { Answer, Respond, Refuse, Decline, Later };

// Ends `each`, a Request or a KeptRequest, whose handle is `handle`. Returns false if it had ended.
template <class Endpoint, class Each>
bool end_request(Endpoint& endpoint, Each& each, const RequestHandle& handle, Ending how, Instant now) {
    switch (how) {
        case Ending::Answer:
            return endpoint.answer(handle, {}, now);
        case Ending::Respond:
            return endpoint.reserve(handle, 3).size() == 3 && endpoint.respond(handle, now);
        case Ending::Refuse:
            return endpoint.refuse(handle, now);
        case Ending::Decline:
            return each.decline();
        case Ending::Later:
            break;
    }
    return false;
}

[[nodiscard]] constexpr CallStatus status_of(Ending how) noexcept {
    return how == Ending::Refuse    ? CallStatus::AnswerLost
           : how == Ending::Decline ? CallStatus::NotExecuted
                                    : CallStatus::Ok;
}

// A handler of the server ends the request that is kept, and then its own.
template <class Pair>
class RpcOtherRequests : public RpcPromises<Pair> {
protected:
    using Endpoint = typename Pair::Endpoint;

    RpcOtherRequests() { this->server().set_handler(kUnknown, end_both, this); }
    static void end_both(void* context, const Request<Endpoint>& request) {
        auto& self = *static_cast<RpcOtherRequests*>(context);
        ASSERT_EQ(self.kept.size(), 1U);
        KeptRequest kept = std::move(self.kept.front());
        self.kept.clear();
        EXPECT_TRUE(end_request(request.endpoint, kept, kept, self.other_ends, request.now));
        if (self.own_ends == Ending::Later) {
            self.kept.push_back(request.keep());
        } else {
            EXPECT_TRUE(end_request(request.endpoint, request, request.handle, self.own_ends, request.now));
        }
    }
    void expect_ended(Ending how) {
        ++ended;
        ASSERT_EQ(this->results.count(ended), 1U) << ended;
        EXPECT_EQ(this->results.at(ended), status_of(how)) << ended;
        declined += how == Ending::Decline ? 1 : 0;
    }
    // Keeps a request of `first`, which one of the client's session then ends.
    void end_two(typename Pair::Endpoint& first, SessionId first_session, SessionId session) {
        this->post(first, first_session, ended + 1, kKeep, {1, 2});
        this->pair.run(milliseconds(1));
        this->post(session, ended + 2, kUnknown);
        this->pair.run(milliseconds(2));
        expect_ended(other_ends);
        if (own_ends == Ending::Later) {
            ASSERT_EQ(this->kept.size(), 1U);
            EXPECT_TRUE(this->server().answer(this->kept.front(), {}, this->pair.now));
            this->kept.clear();
            this->pair.run(milliseconds(1));
        }
        expect_ended(own_ends);
    }

    Ending other_ends = Ending::Answer;
    Ending own_ends = Ending::Answer;
    std::uint64_t ended = 0;
    std::uint64_t declined = 0;
};

TYPED_TEST_SUITE_P(RpcOtherRequests);

TYPED_TEST_P(RpcOtherRequests, ACallIsAnsweredWhileOneBeforeItIsKept) {
    const SessionId session = this->pair.connect();
    this->post(session, 1, kKeep);
    this->pair.run(milliseconds(1));
    this->post(session, 2);
    this->pair.run(milliseconds(20));
    ASSERT_EQ(this->results.size(), 1U);
    EXPECT_EQ(this->results.at(2), CallStatus::Ok);
    ASSERT_EQ(this->kept.size(), 1U);
    EXPECT_TRUE(this->server().answer(this->kept[0], {}, this->pair.now));
    this->pair.run(milliseconds(20));
    EXPECT_EQ(this->results.at(1), CallStatus::Ok);
}

// The other request is of the same session or of another one. A request counts as handled unless its own handler has
// declined it.
TYPED_TEST_P(RpcOtherRequests, AHandlerMayEndAnotherRequest) {
    const SessionId session = this->pair.connect();
    const SessionId elsewhere = this->pair.connect_other();
    std::uint64_t not_handled = 0;
    for (const Ending other : {Ending::Answer, Ending::Respond, Ending::Refuse, Ending::Decline}) {
        for (const Ending own : {Ending::Answer, Ending::Respond, Ending::Refuse, Ending::Decline, Ending::Later}) {
            this->other_ends = other;
            this->own_ends = own;
            this->end_two(this->client(), session, session);
            this->end_two(this->other(), elsewhere, session);
            not_handled += own == Ending::Decline ? 2 : 0;
            EXPECT_EQ(this->server().statistics().requests_handled, this->ended - not_handled) << this->ended;
            EXPECT_EQ(this->server().statistics().requests_declined, this->declined) << this->ended;
        }
    }
}

REGISTER_TYPED_TEST_SUITE_P(RpcOtherRequests, ACallIsAnsweredWhileOneBeforeItIsKept, AHandlerMayEndAnotherRequest);

}  // namespace cairn::rpc::test
