// Requests that the accepting end of a connection posts before its peer has said that it is ready.
#include "lib/verbs/connector.hpp"

#include "tests/unit/verbs/verbs_pair.hpp"

namespace cairn::verbs {
namespace {

constexpr std::array<std::uint8_t, 4> kFirstWords{1, 2, 3, 4};

// b accepts the request of a, and posts a message at once.
struct EarlySends : VerbsPair {
    void ask() {
        a.qps.push_back(a.make_qp());
        b.qps.push_back(b.make_qp());
        ASSERT_TRUE(b.connector->listen(kPort, 1).ok());
        ASSERT_TRUE(a.connector->connect(*a.qps[0], to_b(), now).ok());
        run();
    }
    void accept_and_post() {
        ASSERT_TRUE(b.connector->accept(b.expect_event<cm::Requested>().id, *b.qps[0], choice(), now).ok());
        SendRequest request;
        request.is_inline = true;
        request.inline_bytes = kFirstWords;
        ASSERT_EQ(b.qps[0]->post_send(request), PostVerdict::Posted);
        run();
    }
    void receive_at_a() {
        const std::array<Sge, 1> place{a.mr->sge(0, 64)};
        ASSERT_EQ(a.qps[0]->post_receive({1, place}), PostVerdict::Posted);
    }
};

// Until then the peer may have the connection with an earlier life of the accepting end.
TEST_F(EarlySends, WhatTheAcceptingEndPostsEarlyWaitsUntilTheConnectionIsEstablished) {
    bool mute = false;
    a.port.fate = [&mute](std::uint64_t) { return mute ? 0 : 1; };
    ask();
    mute = true;
    accept_and_post();
    EXPECT_EQ(b.qps[0]->state(), QpState::Rts);
    EXPECT_EQ(b.port.sent(), 1U) << "its answer alone";
    (void)a.expect_event<cm::Established>();
    receive_at_a();
    mute = false;
    pass(seconds(3));
    (void)b.expect_event<cm::Established>();
    EXPECT_EQ(drain(*a.receives).size(), 1U);
    EXPECT_EQ(drain(*b.sends).size(), 1U);
    a.port.fate = [](std::uint64_t) { return 1; };  // objects that end after the test also send
}

TEST_F(EarlySends, APeersFirstRequestLetsTheAcceptingEndSend) {
    a.port.fate = [](std::uint64_t number) { return number == 1 ? 0 : 1; };  // its message that it is ready is lost
    ask();
    accept_and_post();
    receive_at_a();
    ASSERT_EQ(write(1, 8), PostVerdict::Posted);
    run();
    (void)b.expect_event<cm::Established>();
    EXPECT_EQ(drain(*a.receives).size(), 1U);
}

TEST_F(EarlySends, TheFirstRequestOfOneAmongManyIsHeardInItsTurn) {
    constexpr std::size_t kOthers = 40;
    bool mute = false;
    a.port.fate = [&mute](std::uint64_t) { return mute ? 0 : 1; };
    ASSERT_TRUE(b.connector->listen(kPort, 64).ok());
    for (std::size_t i = 0; i <= kOthers; ++i) {
        a.qps.push_back(a.make_qp());
        b.qps.push_back(b.make_qp());
        mute = false;
        ASSERT_TRUE(a.connector->connect(*a.qps.back(), to_b(), now).ok());
        run();
        mute = true;  // its message that it is ready is lost
        ASSERT_TRUE(b.connector->accept(b.expect_event<cm::Requested>().id, *b.qps.back(), choice(), now).ok());
        run();
        (void)a.expect_event<cm::Established>();
    }
    mute = false;
    for (std::size_t i = 0; i < kOthers; ++i) {
        std::swap(a.qps[i], a.qps.back());  // the next one to write
        ASSERT_EQ(write(1, 8), PostVerdict::Posted);
        a.turn(now);
        a.turn(now);
        b.turn(now);
        (void)b.expect_event<cm::Established>();
        run();
    }
    a.port.fate = [](std::uint64_t) { return 1; };  // objects that end after the test also send
}

}  // namespace
}  // namespace cairn::verbs
