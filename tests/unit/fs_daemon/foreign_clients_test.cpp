// Other machines' clients whose gateways are lost, begin anew, or report that the clients have gone.
#include <gtest/gtest.h>

#include "tests/unit/fs_daemon/foreign_fixture.hpp"

namespace cairn::fs {
namespace {

using test::client_of;

class ForeignClientsTest : public test::ForeignTest {
protected:
    // Makes a file without a name, which a client of shard 0 has open: it exists until the client is forgotten.
    WalkAnswer make_nameless() {
        const std::string name = name_here();
        const WalkAnswer file = make(name);
        (void)ask<EmptyAnswer>(0, RemoveRequest{kRoot, false, name});
        wire.pass(seconds(2));
        EXPECT_FALSE(is_gone());
        return file;
    }
    [[nodiscard]] bool is_gone() const { return one.shard->counters().removed_files != 0; }
    std::uint64_t forget(test::Node& from, std::uint64_t client) {
        return post(from, peer_bytes_of(PeerForget{client}), PeerCall::Forget);
    }
};

TEST_F(ForeignClientsTest, AClientThatHasGoneIsForgotten) {
    (void)make_nameless();
    const std::uint64_t number = forget(*zero, client_of(0));
    wire.pass(seconds(2));
    EXPECT_TRUE(zero->is_answered(number));
    EXPECT_TRUE(is_gone());
}

TEST_F(ForeignClientsTest, NobodyElseSaysThatItHas) {
    (void)make_nameless();
    const std::uint64_t number = forget(*two, client_of(0));
    wire.pass(seconds(2));
    EXPECT_TRUE(two->is_answered(number));
    EXPECT_FALSE(is_gone());
    EXPECT_TRUE(one.has(2));
    (void)forget(*zero, client_of(0, 1));  // it never came
    wire.pass(seconds(2));
    EXPECT_FALSE(is_gone());
}

TEST_F(ForeignClientsTest, WhatNamesNoClientIsABreach) {
    (void)make_nameless();
    for (const std::size_t bytes : {0U, 7U, 9U}) {
        const std::uint64_t number = post(*two, std::vector<std::uint8_t>(bytes), PeerCall::Forget);
        ASSERT_TRUE(wire.pass_until([&] { return two->outcomes.contains(number); }));
        EXPECT_FALSE(two->is_answered(number));
        ASSERT_TRUE(wire.pass_until([&] { return one.has(2) && two->has(1); }));
    }
    EXPECT_EQ(one.counted(PeerCounter::Breaches), 3U);
    EXPECT_FALSE(is_gone());
}

// The client's calls come before it goes.
TEST_F(ForeignClientsTest, AClientWithACallAtTheShardIsForgottenAfterIt) {
    const WalkAnswer file = make_nameless();
    one.holds = true;
    (void)post(*zero, forward_of(client_of(0), 5, StatRequest{file.attributes.id}));
    wire.pass(milliseconds(5));
    ASSERT_TRUE(one.foreign->is_unanswered());
    (void)forget(*zero, client_of(0));
    wire.pass(milliseconds(5));
    (void)post(*zero, forward_of(client_of(0, 1), 5, StatRequest{kRoot}));  // a reason for the shard to take a turn
    wire.pass(seconds(3));
    EXPECT_FALSE(is_gone());
    one.let_go();
    wire.pass(seconds(2));
    EXPECT_TRUE(is_gone());
}

TEST_F(ForeignClientsTest, ClientsOfAGatewayThatStaysAwayAreForgotten) {
    (void)make_nameless();
    kill_zero();
    wire.pass(ForeignCalls::kGrace - seconds(1));
    EXPECT_FALSE(is_gone());
    wire.pass(seconds(3));
    EXPECT_TRUE(is_gone());
}

TEST_F(ForeignClientsTest, ClientsOfAGatewayThatIsBackInTimeStay) {
    (void)make_nameless();
    one.links.lose(0);
    ASSERT_TRUE(wire.pass_until([&] { return one.has(0); }));
    wire.pass(ForeignCalls::kGrace * 3);
    EXPECT_FALSE(is_gone());
}

// In a gateway's new life its clients have to come back themselves.
TEST_F(ForeignClientsTest, OfAGatewayThatBeginsAnewThoseStayThatComeBack) {
    const WalkAnswer file = make_nameless();
    kill_zero();
    wire.pass(seconds(5));
    begin_zero(500);
    wire.pass(seconds(2));
    (void)ask<AttributesAnswer>(1, StatRequest{file.attributes.id});
    wire.pass(ForeignCalls::kGrace * 3);
    EXPECT_FALSE(is_gone());
    kill_zero();
    begin_zero(900);
    wire.pass(ForeignCalls::kGrace + seconds(2));  // no client comes
    EXPECT_TRUE(is_gone());
}

// No caller awaits the unanswered calls of a lost gateway, but the next call of the same slot waits for them.
TEST_F(ForeignClientsTest, ACallOfALostGatewayHoldsItsSlotUntilTheShardIsDone) {
    const WalkAnswer file = make_nameless();
    one.holds = true;
    const StatRequest stat{file.attributes.id};
    (void)post(*zero, forward_of(client_of(0), 5, stat));
    (void)post(*zero, forward_of(client_of(0), 5, stat));  // queued after it, and never executed
    wire.pass(milliseconds(5));
    const std::uint64_t before = calls();
    kill_zero();
    begin_zero(500);
    const std::uint64_t again = post(*zero, forward_of(client_of(0), 5, stat));
    wire.pass(milliseconds(50));
    EXPECT_EQ(calls(), before);
    one.let_go();
    wire.pass(milliseconds(5));
    EXPECT_EQ(calls(), before + 1);
    one.let_go();
    wire.pass(milliseconds(5));
    EXPECT_TRUE(zero->is_answered(again));
    EXPECT_FALSE(one.foreign->is_unanswered());
}

// Memory of a gateway that is gone is neither read nor written.
TEST_F(ForeignClientsTest, AGatewayThatIsLostUnderAReadTakesTheCallAlong) {
    const WalkAnswer file = make(name_here());
    std::vector<std::uint8_t> data(1U << 20U, 5);
    WriteRequest write{.file = file.attributes.id, .grant = {kMayRead | kMayWrite, file.proof}, .bytes = 1U << 20U};
    write.generation = file.attributes.generation;
    const std::uint64_t before = calls();
    (void)post(*zero, forward_of(client_of(0), 1, write, {}, open(data, verbs::Right::RemoteRead)));
    wire.pass(microseconds(60));  // the request is on its way
    kill_zero();
    wire.pass(seconds(1));
    EXPECT_EQ(calls(), before);
    begin_zero(500);
    EXPECT_EQ(ask<AttributesAnswer>(1, StatRequest{file.attributes.id}).attributes.size, 0U);
}

// This holds even after its next life has the connection of the same number.
TEST_F(ForeignClientsTest, AGatewayThatIsLostBeforeTheAnswerGetsNoData) {
    const WalkAnswer file = make(name_here());
    std::vector<std::uint8_t> data(100'000, 5);
    WriteRequest write{.file = file.attributes.id, .grant = {kMayRead | kMayWrite, file.proof}, .bytes = 100'000};
    write.generation = file.attributes.generation;
    const std::uint64_t wrote =
        post(*zero, forward_of(client_of(0), 1, write, {}, open(data, verbs::Right::RemoteRead)));
    ASSERT_TRUE(wire.pass_until([&] { return zero->is_answered(wrote); }));
    one.holds = true;
    std::vector<std::uint8_t> into(100'000);
    const ReadRequest read{.file = file.attributes.id, .grant = {kMayRead | kMayWrite, file.proof}, .bytes = 100'000};
    (void)post(*zero, forward_of(client_of(0), 1, read, {}, open(into, verbs::Right::RemoteWrite)));
    wire.pass(milliseconds(5));
    ASSERT_TRUE(one.foreign->is_unanswered());
    const SessionId before = one.links.session_of(0).value();
    kill_zero();
    begin_zero(500);
    const auto number = [this] { return one.links.session_of(0).value().number(); };
    ASSERT_TRUE(wire.pass_until([&] { return one.has(0) && zero->has(1); }));
    for (int i = 0; i != 40 && number() != before.number(); ++i) {
        one.links.lose(0);
        ASSERT_TRUE(wire.pass_until([&] { return one.has(0) && zero->has(1); }));
    }
    ASSERT_EQ(number(), before.number());
    EXPECT_NE(one.links.session_of(0).value(), before);
    const std::uint64_t lost = one.counted(PeerCounter::Lost);
    one.let_go();
    one.holds = false;
    wire.pass(milliseconds(50));
    EXPECT_TRUE(one.has(0));  // nothing was written to the new connection
    EXPECT_EQ(one.counted(PeerCounter::Lost), lost);
    EXPECT_EQ(ask<AttributesAnswer>(1, StatRequest{file.attributes.id}).attributes.size, 100'000U);
}

}  // namespace
}  // namespace cairn::fs
