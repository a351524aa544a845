// Calls of clients to a remote shard, which answers as the test says.
#include "fs/daemon/gateway.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <numeric>

#include "tests/unit/fs_daemon/gateway_fixture.hpp"

namespace cairn::fs {
namespace {

using test::GatewayTest;

constexpr FileId kFile{1, 77};
constexpr std::uint64_t kCaller = 4711;
constexpr std::uint32_t kLarge = 100'000;

ReadRequest read_of(std::uint32_t bytes, std::uint32_t at = 0) {
    return {.file = kFile, .bytes = bytes, .at = at};
}
WriteRequest write_of(std::uint32_t bytes, std::uint32_t at = 0) {
    return {.file = kFile, .bytes = bytes, .at = at};
}

TEST_F(GatewayTest, ACallArrivesAsItIsAndItsAnswerComesBack) {
    const Call call = take(clients.call(kCaller, 5, StatRequest{kFile}));
    ASSERT_TRUE(wire.pass_until([&] { return forwards.size() == 1; }));
    const ParsedForward& there = forwards[0].parsed;
    EXPECT_EQ(there.call.client, kCaller);
    EXPECT_EQ(there.call.slot, 5U);
    EXPECT_EQ(there.call.who.uid, 1000U);
    EXPECT_EQ(there.call.who.gid, 100U);
    EXPECT_EQ(there.call.who.groups.size(), 2 * sizeof(std::uint32_t));
    EXPECT_EQ(there.call.request, text_of(call.request));
    EXPECT_TRUE(there.call.data.empty());
    EXPECT_FALSE(clients.has(call));
    respond(0, ok());
    wire.pass(milliseconds(5));
    EXPECT_EQ(clients.answers.at(call.token), ok());
    EXPECT_EQ(counted(PeerCounter::Forwarded), 1U);
    EXPECT_EQ(counted(PeerCounter::Unreachable), 0U);
}

TEST_F(GatewayTest, FewDataTravelInTheMessages) {
    const Call write = clients.call(kCaller, 1, write_of(1000, 4096));
    std::iota(clients.data(write).begin(), clients.data(write).end(), std::uint8_t{3});
    take(write);
    const Call read = take(clients.call(kCaller, 2, read_of(kMostInlineBytes, 100)));
    ASSERT_TRUE(wire.pass_until([&] { return forwards.size() == 2; }));
    EXPECT_EQ(forwards[0].parsed.call.data, text_of(clients.data(write).subspan(4096, 1000)));
    EXPECT_EQ(forwards[0].parsed.data.at, 0U);
    EXPECT_EQ(forwards[0].parsed.call.key, 0U);
    respond(0, ok());
    respond(1, ok(), std::vector<std::uint8_t>(kMostInlineBytes, 9));
    wire.pass(milliseconds(5));
    EXPECT_EQ(clients.error_of(write), 0);
    EXPECT_EQ(clients.error_of(read), 0);
    const auto data = clients.data(read);
    EXPECT_EQ(data[99], 0);
    EXPECT_EQ(data[100], 9);
    EXPECT_EQ(data[100 + kMostInlineBytes - 1], 9);
    EXPECT_EQ(data[100 + kMostInlineBytes], 0);
}

TEST_F(GatewayTest, ManyDataAreReadWhereTheyLieAndNowhereElse) {
    const Call write = clients.call(kCaller, 1, write_of(kLarge, 4096));
    std::ranges::fill(clients.data(write), std::uint8_t{6});
    take(write);
    ASSERT_TRUE(wire.pass_until([&] { return forwards.size() == 1; }));
    EXPECT_TRUE(forwards[0].parsed.call.data.empty());
    const copyrpc::Place place = place_of(0, kLarge);
    std::vector<std::uint8_t> into(kLarge);
    EXPECT_EQ(read(place, into), rpc::CallStatus::Ok);
    EXPECT_EQ(into, std::vector<std::uint8_t>(kLarge, 6));
    // The byte after them does not belong to the peer.
    into.resize(kLarge + 1);
    EXPECT_NE(read({place.address, place.rkey, kLarge + 1}, into), rpc::CallStatus::Ok);
}

TEST_F(GatewayTest, WhoMayReadMayNotWrite) {
    take(clients.call(kCaller, 1, write_of(kLarge)));
    ASSERT_TRUE(wire.pass_until([&] { return forwards.size() == 1; }));
    EXPECT_NE(write(place_of(0, kLarge), std::vector<std::uint8_t>(kLarge, 1)), rpc::CallStatus::Ok);
}

TEST_F(GatewayTest, ManyDataAreWrittenWhereTheyLie) {
    const Call read = take(clients.call(kCaller, 1, read_of(kLarge, 8)));
    ASSERT_TRUE(wire.pass_until([&] { return forwards.size() == 1; }));
    EXPECT_EQ(write(place_of(0, kLarge), std::vector<std::uint8_t>(kLarge, 4)), rpc::CallStatus::Ok);
    respond(0, ok());
    wire.pass(milliseconds(5));
    EXPECT_EQ(clients.error_of(read), 0);
    EXPECT_EQ(clients.data(read)[7], 0);
    EXPECT_EQ(clients.data(read)[8], 4);
    EXPECT_EQ(clients.data(read)[8 + kLarge - 1], 4);
}

// After the answer only the client may use its memory.
TEST_F(GatewayTest, APlaceIsClosedWithItsCall) {
    const Call call = take(clients.call(kCaller, 1, read_of(kLarge)));
    ASSERT_TRUE(wire.pass_until([&] { return forwards.size() == 1; }));
    const copyrpc::Place place = place_of(0, kLarge);
    respond(0, ok());
    wire.pass(milliseconds(5));
    EXPECT_EQ(clients.error_of(call), 0);
    EXPECT_NE(write(place, std::vector<std::uint8_t>(kLarge, 4)), rpc::CallStatus::Ok);
    EXPECT_EQ(clients.data(call)[0], 0);
}

TEST_F(GatewayTest, RequestsForMoreThanTheClientHasAreRefusedHere) {
    constexpr auto kRoom = static_cast<std::uint32_t>(test::Clients::kRoom);
    const std::vector<Call> calls{
        clients.call(kCaller, 1, read_of(10, kRoom - 9)),
        clients.call(kCaller, 2, write_of(10, kRoom + 1)),
        clients.call(kCaller, 3, write_of(10, 0xffff'fffb)),
        clients.call(kCaller, 4, read_of(0xffff'ffff, 4)),
        clients.call(kCaller, 5, read_of(kMostForwardedData + 1)),
        clients.call(kCaller, 6, write_of(1), 1, 0),
        clients.call_of(kCaller, 7, {1, 2, 3}),
        clients.call_of(kCaller, 8, {}),
    };
    for (const Call& each : calls) {
        take(each);
        EXPECT_EQ(clients.error_of(each), EINVAL) << each.slot;
    }
    const Call fits = take(clients.call(kCaller, 9, read_of(10, kRoom - 10)));
    wire.pass(milliseconds(5));
    EXPECT_EQ(forwards.size(), 1U);
    EXPECT_FALSE(clients.has(fits));
    EXPECT_EQ(counted(PeerCounter::Unreachable), 0U);
}

TEST_F(GatewayTest, SoManyAreUnderWayAndTheOthersFollowInOrder) {
    for (std::uint32_t i = 0; i != 100; ++i) {
        take(clients.call(kCaller, i, write_of(10)));
    }
    wire.pass(milliseconds(5));
    ASSERT_EQ(forwards.size(), Gateway::kMostUnderWay);
    EXPECT_EQ(zero->gateway->next_deadline(), Instant::never());
    respond(0, ok());
    respond(1, ok());
    wire.pass(milliseconds(5));
    EXPECT_EQ(forwards.size(), Gateway::kMostUnderWay + 2);
    for (std::size_t i = 2; i != 100; ++i) {
        respond(i, ok());
        wire.pass(milliseconds(1));
    }
    ASSERT_EQ(forwards.size(), 100U);
    for (std::uint32_t i = 0; i != 100; ++i) {
        EXPECT_EQ(forwards[i].parsed.call.slot, i);
    }
    EXPECT_EQ(clients.answers.size(), 100U);
}

TEST_F(GatewayTest, WhatIsNoAnswerIsAnError) {
    const Call stat = take(clients.call(kCaller, 1, StatRequest{kFile}));
    const Call read = take(clients.call(kCaller, 2, read_of(10)));
    const Call empty = take(clients.call(kCaller, 3, StatRequest{kFile}));
    const Call refused = take(clients.call(kCaller, 4, StatRequest{kFile}));
    const Call cut = take(clients.call(kCaller, 5, StatRequest{kFile}));
    const Call large = take(clients.call(kCaller, 6, write_of(kLarge)));
    const Call too_long = take(clients.call(kCaller, 7, read_of(10)));
    ASSERT_TRUE(wire.pass_until([&] { return forwards.size() == 7; }));
    respond(0, ok(), {1});                                               // unrequested data
    respond(1, ok(), std::vector<std::uint8_t>(11));                     // more than requested
    respond(2, {});                                                      // an empty answer
    forwards[3].request.drop();                                          // the shard has given the call up
    respond_bytes(4, {200, 0, 1});                                       // shorter than its length says
    respond(5, ok(), {1});                                               // data that were written elsewhere
    respond_bytes(6, std::vector<std::uint8_t>(10'000, 0));              // too long for the room here
    ASSERT_TRUE(wire.pass_until([&] { return forwards.size() == 8; }));  // requested again, with room for any answer
    respond_bytes(7, std::vector<std::uint8_t>(10'000, 0));
    wire.pass(milliseconds(5));
    for (const Call& each : {stat, read, empty, refused, cut, large, too_long}) {
        EXPECT_EQ(clients.error_of(each), EIO) << each.slot;
    }
    EXPECT_EQ(clients.data(read)[0], 0);
    EXPECT_EQ(counted(PeerCounter::Unreachable), 7U);
}

TEST_F(GatewayTest, OfTwoAnswersTheFirstCounts) {
    const Call call = take(clients.call(kCaller, 1, StatRequest{kFile}));
    ASSERT_TRUE(wire.pass_until([&] { return forwards.size() == 1; }));
    const rpc::RequestHandle handle = forwards[0].request.handle();
    respond(0, ok());
    EXPECT_FALSE(one->endpoint->answer(handle, {}, wire.now));
    wire.pass(milliseconds(5));
    EXPECT_EQ(clients.error_of(call), 0);
}

TEST_F(GatewayTest, CallsOfALostPeerGoAgainToItsNextLife) {
    const Call stat = take(clients.call(kCaller, 1, StatRequest{kFile}));
    const Call write = clients.call(kCaller, 2, write_of(kLarge));
    std::ranges::fill(clients.data(write), std::uint8_t{6});
    take(write);
    ASSERT_TRUE(wire.pass_until([&] { return forwards.size() == 2; }));
    restart_one(500);
    ASSERT_TRUE(wire.pass_until([&] { return forwards.size() == 2; }));
    EXPECT_FALSE(clients.has(stat) || clients.has(write));
    std::ranges::sort(forwards, {}, [](const auto& each) { return each.parsed.call.slot; });
    EXPECT_EQ(forwards[0].parsed.call.request, text_of(stat.request));  // the same sequence number
    std::vector<std::uint8_t> into(kLarge);
    EXPECT_EQ(read(place_of(1, kLarge), into), rpc::CallStatus::Ok);  // opened to its new connection
    EXPECT_EQ(into.front(), 6);
    respond(0, ok());
    respond(1, ok());
    wire.pass(milliseconds(5));
    EXPECT_EQ(clients.error_of(stat), 0);
    EXPECT_EQ(clients.error_of(write), 0);
}

TEST_F(GatewayTest, CallsOfAPeerThatStaysAwayFail) {
    const Call under_way = take(clients.call(kCaller, 1, write_of(kLarge)));
    ASSERT_TRUE(wire.pass_until([&] { return forwards.size() == 1; }));
    kill_one();
    ASSERT_TRUE(wire.pass_until([&] { return !zero->has(1); }));
    const Instant lost_at = wire.now;
    const Call waiting = take(clients.call(kCaller, 2, StatRequest{kFile}));
    wire.pass(Gateway::kPatience - milliseconds(100));
    EXPECT_FALSE(clients.has(under_way) || clients.has(waiting));
    ASSERT_TRUE(wire.pass_until([&] { return clients.has(under_way) && clients.has(waiting); }));
    EXPECT_LE(wire.now, lost_at + Gateway::kPatience + milliseconds(100));
    EXPECT_EQ(clients.error_of(under_way), EIO);
    EXPECT_EQ(clients.error_of(waiting), EIO);
    EXPECT_EQ(counted(PeerCounter::Unreachable), 2U);
    // Later calls have to wait less, but still have some time of their own.
    const Call late = take(clients.call(kCaller, 1, StatRequest{kFile}));
    wire.pass(Gateway::kLeastPatience - milliseconds(100));
    EXPECT_FALSE(clients.has(late));
    wire.pass(milliseconds(200));
    EXPECT_EQ(clients.error_of(late), EIO);
}

TEST_F(GatewayTest, APeerThatTakesCallsAndNeverAnswersIsWaitedForUntilItIsGone) {
    const Call call = take(clients.call(kCaller, 1, StatRequest{kFile}));
    wire.pass(seconds(60));
    EXPECT_FALSE(clients.has(call));  // the peer is there: the shard may be working on it
    kill_one();
    wire.pass(seconds(2) + Gateway::kPatience + seconds(1));
    EXPECT_EQ(clients.error_of(call), EIO);
}

TEST_F(GatewayTest, AClientThatGoesIsToldToThoseThatHaveHeardOfIt) {
    zero->gateway->forget(kCaller);  // no shard has calls of it
    const Call call = take(clients.call(kCaller, 1, StatRequest{kFile}));
    ASSERT_TRUE(wire.pass_until([&] { return forwards.size() == 1; }));
    respond(0, ok());
    wire.pass(milliseconds(5));
    EXPECT_TRUE(clients.has(call));
    EXPECT_TRUE(forgotten.empty());
    zero->gateway->forget(kCaller);
    take(clients.call(kCaller, 2, StatRequest{kFile}));
    wire.pass(milliseconds(5));
    EXPECT_EQ(forgotten, std::vector<std::uint64_t>{kCaller});
    EXPECT_EQ(order, "call forget call ");
    zero->gateway->forget(kCaller + 1);
    wire.pass(milliseconds(5));
    EXPECT_EQ(forgotten.size(), 1U);
}

TEST_F(GatewayTest, AClientThatGoesWhileAPeerIsLostIsToldOnceItIsBack) {
    take(clients.call(kCaller, 1, StatRequest{kFile}));
    ASSERT_TRUE(wire.pass_until([&] { return forwards.size() == 1; }));
    respond(0, ok());
    wire.pass(milliseconds(5));
    kill_one();
    ASSERT_TRUE(wire.pass_until([&] { return !zero->has(1); }));
    zero->gateway->forget(kCaller);
    take(clients.call(kCaller + 1, 1, StatRequest{kFile}));
    order.clear();
    begin_one(500);
    ASSERT_TRUE(wire.pass_until([&] { return forwards.size() == 1; }));
    EXPECT_EQ(order, "forget call ");
}

// The peer may have died before the message came, or before it acted on it.
TEST_F(GatewayTest, ALostPeerIsToldAgainUnlessTheClientHasComeBack) {
    for (const std::uint64_t client : {kCaller, kCaller + 1}) {
        take(clients.call(client, 1, StatRequest{kFile}));
    }
    ASSERT_TRUE(wire.pass_until([&] { return forwards.size() == 2; }));
    respond(0, ok());
    respond(1, ok());
    wire.pass(milliseconds(5));
    zero->gateway->forget(kCaller);
    zero->gateway->forget(kCaller + 1);
    wire.pass(milliseconds(5));
    EXPECT_EQ(forgotten, (std::vector<std::uint64_t>{kCaller, kCaller + 1}));
    const Call back = take(clients.call(kCaller, 1, StatRequest{kFile}));
    ASSERT_TRUE(wire.pass_until([&] { return forwards.size() == 3; }));
    respond(2, ok());
    wire.pass(milliseconds(5));
    EXPECT_TRUE(clients.has(back));
    forgotten.clear();
    restart_one(500);
    wire.pass(milliseconds(100));
    EXPECT_EQ(forgotten, std::vector<std::uint64_t>{kCaller + 1});
}

}  // namespace
}  // namespace cairn::fs
