// Calls that are tried: they are posted if there is room at once; otherwise the caller is notified when there is.
#include "tests/unit/copyrpc/two_hosts.hpp"

namespace cairn::copyrpc {
namespace {

EndpointConfig small() {
    EndpointConfig config = small_config(100);
    config.calls_max = 64;
    return config;
}

class CopyrpcAttempts : public TwoHosts {
protected:
    CopyrpcAttempts() : TwoHosts(small()), session(connect()) {
        client.endpoint->set_room_callback(
            [](void* context, SessionId which) {
                auto& self = *static_cast<CopyrpcAttempts*>(context);
                EXPECT_EQ(which.value, self.session.value);
                ++self.told;
                if (self.goes_on) {
                    const int before = self.posted;
                    self.try_all();
                    EXPECT_GT(self.posted, before) << "there was no room";
                }
            },
            this);
    }
    Tried attempt(std::size_t bytes, std::uint8_t type = kEcho) {
        request.resize(bytes);
        Call call;
        call.type = type;
        call.request = request;
        call.context = this;
        call.completion = [](void* context, const rpc::CallResult& result) {
            auto& self = *static_cast<CopyrpcAttempts*>(context);
            self.answered += result.status == CallStatus::Ok ? 1 : 0;
            ++self.ended;
        };
        return client.endpoint->try_post(session, call, now);
    }
    // Tries until there is no room, or the wanted number is posted.
    void try_all() {
        while (posted < wanted) {
            const Tried tried = attempt(100);
            last = tried.attempt;
            if (tried.attempt != Attempt::Posted) {
                ++in_vain;
                return;
            }
            EXPECT_NE(tried.id, 0U);
            ++posted;
        }
    }

    SessionId session;
    std::vector<std::uint8_t> request;
    Attempt last = Attempt::Posted;
    bool goes_on = true;
    int wanted = 0;
    int posted = 0;
    int in_vain = 0;
    int told = 0;
    int answered = 0;
    int ended = 0;
};

TEST_F(CopyrpcAttempts, EachOneInVainIsToldOnceAndAllGetThrough) {
    wanted = 1000;
    try_all();
    EXPECT_LT(posted, 64);
    EXPECT_EQ(client.endpoint->calls_pending(), static_cast<std::uint32_t>(posted)) << "none waits";
    run(milliseconds(100));
    EXPECT_EQ(posted, 1000);
    EXPECT_EQ(answered, 1000);
    EXPECT_GT(told, 10);
    EXPECT_EQ(told, in_vain);
}

TEST_F(CopyrpcAttempts, NobodyIsToldWhoDoesNotTryAgain) {
    goes_on = false;
    wanted = 1000;
    try_all();
    run(milliseconds(10));
    EXPECT_EQ(told, 1);
    EXPECT_EQ(answered, posted);
}

TEST_F(CopyrpcAttempts, RequestsThatArePutOffTakeTheRoomForAnswersFirst) {
    wanted = 1000;
    goes_on = false;
    Tried tried;
    while ((tried = attempt(1, kKeep)).attempt == Attempt::Posted) {
        run(microseconds(100));  // read by the server, so out of the ring
    }
    EXPECT_EQ(tried.attempt, Attempt::InsufficientCredit);
    EXPECT_EQ(told, 0);
    empty_answers = true;
    for (const RequestHandle& handle : kept) {
        EXPECT_TRUE(server.endpoint->respond(handle, now));
    }
    run(milliseconds(1));
    EXPECT_EQ(told, 1);
}

TEST_F(CopyrpcAttempts, ARingThatIsNotReadIsFull) {
    Tried tried;
    while ((tried = attempt(300)).attempt == Attempt::Posted) {
    }
    EXPECT_EQ(tried.attempt, Attempt::RingFull);
}

TEST_F(CopyrpcAttempts, NobodyOvertakesCallsThatWait) {
    for (std::uint64_t tag = 1; tag <= 20; ++tag) {
        ASSERT_EQ(post(session, tag, 90).verdict, PostVerdict::Posted);
    }
    EXPECT_EQ(attempt(1).attempt, Attempt::RingFull);
    goes_on = false;
    run(milliseconds(5));
    EXPECT_EQ(told, 1);
    EXPECT_EQ(count(CallStatus::Ok), 20U);
}

TEST_F(CopyrpcAttempts, WhatNeverFitsIsToldSo) {
    EXPECT_EQ(attempt(600).attempt, Attempt::TooLong);
    EXPECT_EQ(attempt(RingShape::kMostBytes + 1).attempt, Attempt::TooLong);
    const SessionId open = session;
    session = client.endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), kService, now).value();
    EXPECT_EQ(attempt(1).attempt, Attempt::NotOpen);
    session = SessionId{63};
    EXPECT_EQ(attempt(1).attempt, Attempt::NoSuchSession);
    session = open;
    client.endpoint->disconnect(open, now);
    EXPECT_EQ(attempt(1).attempt, Attempt::NoSuchSession);
    EXPECT_EQ(ended, 0);
}

TEST_F(CopyrpcAttempts, AFullTableOfCallsIsToldSo) {
    for (std::uint64_t tag = 1; tag <= 64; ++tag) {
        ASSERT_EQ(post(session, tag, 300).verdict, PostVerdict::Posted);
    }
    EXPECT_EQ(attempt(1).attempt, Attempt::Full);
}

}  // namespace
}  // namespace cairn::copyrpc
