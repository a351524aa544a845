// Calls of other machines' clients, through gateways that are honest, faulty, or gone.
#include "fs/daemon/foreign_calls.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/fs_daemon/foreign_fixture.hpp"
#include "tests/unit/fs_daemon/stranger.hpp"

namespace cairn::fs {
namespace {

using test::client_of;
using test::ForeignTest;

constexpr std::uint32_t kMany = 100'000;

ReadRequest read_of(const WalkAnswer& file, std::uint32_t bytes) {
    return {.file = file.attributes.id, .grant = {kMayRead | kMayWrite, file.proof}, .bytes = bytes};
}
WriteRequest write_of(const WalkAnswer& file, std::uint32_t bytes) {
    return {.file = file.attributes.id,
            .grant = {kMayRead | kMayWrite, file.proof},
            .generation = file.attributes.generation,
            .bytes = bytes};
}

TEST_F(ForeignTest, ACallIsTheClientsThatItsGatewayNames) {
    const WalkAnswer file = make(name_here());
    EXPECT_EQ(file.attributes.uid, 1000U);
    EXPECT_EQ(ask<AttributesAnswer>(1, StatRequest{file.attributes.id}).attributes.id, file.attributes.id);
    EXPECT_EQ(one.counted(PeerCounter::Foreign), 2U);
    EXPECT_FALSE(one.foreign->is_unanswered());
}

TEST_F(ForeignTest, FewDataComeAndGoInTheMessages) {
    const WalkAnswer file = make(name_here());
    const std::vector<std::uint8_t> data(kMostInlineBytes, 5);
    const std::uint64_t wrote = post(*zero, forward_of(client_of(0), 1, write_of(file, kMostInlineBytes), data));
    wire.pass(milliseconds(5));
    DataAnswer answer;
    EXPECT_EQ(told(wrote, {DataWay::Brings, kMostInlineBytes, 0}, answer).error, 0);
    EXPECT_EQ(answer.bytes, kMostInlineBytes);
    const std::uint64_t read = post(*zero, forward_of(client_of(0), 1, read_of(file, kMostInlineBytes)));
    wire.pass(milliseconds(5));
    EXPECT_EQ(told(read, {DataWay::Takes, kMostInlineBytes, 0}, answer).data, data);
}

TEST_F(ForeignTest, ManyDataAreFetchedAndDelivered) {
    const WalkAnswer file = make(name_here());
    std::vector<std::uint8_t> data(kMany, 5);
    data.back() = 6;
    const copyrpc::Place from = open(data, verbs::Right::RemoteRead);
    const std::uint64_t wrote = post(*zero, forward_of(client_of(0), 1, write_of(file, kMany), {}, from));
    ASSERT_TRUE(wire.pass_until([&] { return zero->is_answered(wrote); }));
    DataAnswer answer;
    EXPECT_EQ(told(wrote, {DataWay::Brings, kMany, 0}, answer).error, 0);
    std::vector<std::uint8_t> into(kMany);
    const copyrpc::Place to = open(into, verbs::Right::RemoteWrite);
    const std::uint64_t read = post(*zero, forward_of(client_of(0), 1, read_of(file, kMany), {}, to));
    ASSERT_TRUE(wire.pass_until([&] { return zero->is_answered(read); }));
    EXPECT_EQ(told(read, {DataWay::Takes, kMany, 0}, answer).error, 0);
    EXPECT_EQ(answer.bytes, kMany);
    EXPECT_EQ(into, data);
}

// Bytes that a read does not find do not overwrite the client's memory.
TEST_F(ForeignTest, AShortReadDeliversWhatItHasRead) {
    const WalkAnswer file = make(name_here());
    std::vector<std::uint8_t> data(kMany, 5);
    const std::uint64_t wrote =
        post(*zero, forward_of(client_of(0), 1, write_of(file, kMany), {}, open(data, verbs::Right::RemoteRead)));
    ASSERT_TRUE(wire.pass_until([&] { return zero->is_answered(wrote); }));
    std::vector<std::uint8_t> into(2 * kMany, 9);
    const copyrpc::Place to = open(into, verbs::Right::RemoteWrite);
    const std::uint64_t read = post(*zero, forward_of(client_of(0), 1, read_of(file, 2 * kMany), {}, to));
    ASSERT_TRUE(wire.pass_until([&] { return zero->is_answered(read); }));
    DataAnswer answer;
    EXPECT_EQ(told(read, {DataWay::Takes, 2 * kMany, 0}, answer).error, 0);
    EXPECT_EQ(answer.bytes, kMany);
    EXPECT_EQ(into[kMany - 1], 5);
    EXPECT_EQ(into[kMany], 9);
}

TEST_F(ForeignTest, ACallForAnotherShardIsAnsweredSo) {
    const std::uint64_t number = post(*zero, forward_of(client_of(0), 1, StatRequest{kRoot}, {}, {}, 2));
    wire.pass(milliseconds(5));
    EmptyAnswer none;
    EXPECT_EQ(told(number, {}, none).error, kErrorOtherShard);
    EXPECT_TRUE(one.has(0));
}

// Each of these messages ends the connection; the shard never gets it.
TEST_F(ForeignTest, WhatNoHonestGatewayForwardsIsABreach) {
    const WalkAnswer file = make(name_here());
    const std::uint64_t before = calls();
    const std::vector<std::function<std::vector<std::uint8_t>()>> breaches{
        [] { return std::vector<std::uint8_t>{}; },
        [] { return std::vector<std::uint8_t>(100, 0xff); },
        [&] {  // cut short
            auto bytes = forward_of(client_of(0), 1, StatRequest{kRoot});
            bytes.pop_back();
            return bytes;
        },
        [&] {  // too long
            auto bytes = forward_of(client_of(0), 1, StatRequest{kRoot});
            bytes.push_back(0);
            return bytes;
        },
        [&] { return forward_of(client_of(1), 1, StatRequest{kRoot}); },  // this machine's client
        [&] { return forward_of(client_of(2), 1, StatRequest{kRoot}); },  // another machine's
        [&] { return forward_of(client_of(3), 1, StatRequest{kRoot}); },  // of no machine
        [&] { return forward_of(0, 1, StatRequest{kRoot}); },
        [&] { return forward_of(client_of(0), 1024, StatRequest{kRoot}); },
        [&] { return forward_of(client_of(0), 1, write_of(file, 10), std::vector<std::uint8_t>(9)); },
        [&] { return forward_of(client_of(0), 1, read_of(file, kMostForwardedData + 1)); },
        [&] { return bytes_of({.client = client_of(0), .slot = 1, .request = "no request"}); },
    };
    for (std::size_t i = 0; i != breaches.size(); ++i) {
        SCOPED_TRACE(i);
        const std::uint64_t number = post(*zero, breaches[i]());
        ASSERT_TRUE(wire.pass_until([&] { return zero->outcomes.contains(number); }));
        EXPECT_FALSE(zero->is_answered(number));
        EXPECT_EQ(one.counted(PeerCounter::Breaches), i + 1);
        EXPECT_EQ(one.lost.size(), i + 1);
        ASSERT_TRUE(wire.pass_until([&] { return one.has(0) && zero->has(1); }));
    }
    EXPECT_EQ(calls(), before);
    EXPECT_TRUE(one.has(2));  // no other peer suffers
}

TEST_F(ForeignTest, AStrangersCallsAreNotLookedAt) {
    const std::uint64_t before = one.counted(PeerCounter::Strangers);
    for (const PeerCall what : {PeerCall::Forward, PeerCall::Forget}) {
        test::Stranger stranger(wire, "10.0.0.9", 77);
        auto bytes = what == PeerCall::Forget ? peer_bytes_of(PeerForget{client_of(0)})
                                              : forward_of(client_of(0), 1, StatRequest{kRoot});
        EXPECT_FALSE(stranger.ask(what, bytes).has_value());
        EXPECT_TRUE(stranger.is_out());
        wire.remove(stranger);
    }
    EXPECT_EQ(one.counted(PeerCounter::Strangers), before + 2);
    EXPECT_EQ(one.counted(PeerCounter::Foreign), 0U);
    EXPECT_EQ(calls(), 0U);
}

// This is more than an honest gateway ever has, counting all of its lives.
TEST_F(ForeignTest, APeerHasSoManyCallsAndNoMore) {
    one.gives = false;
    for (std::uint32_t i = 0; i != ForeignCalls::kMostCalls; ++i) {
        (void)post_short(*zero, i, SyncRequest{}, 4711, 32);
        wire.pass(microseconds(200));
    }
    ASSERT_TRUE(wire.pass_until([&] { return one.counted(PeerCounter::Foreign) == ForeignCalls::kMostCalls; }));
    EXPECT_TRUE(one.has(0));
    (void)post_short(*zero, 999, SyncRequest{}, 4711, 32);
    ASSERT_TRUE(wire.pass_until([&] { return !one.has(0); }));
    EXPECT_EQ(one.counted(PeerCounter::Breaches), 1U);
    // The calls end with the shard's next turn, and the peer has room again.
    one.gives = true;
    ASSERT_TRUE(wire.pass_until([&] { return one.has(0) && zero->has(1); }));
    (void)ask<EmptyAnswer>(1, SyncRequest{});
}

TEST_F(ForeignTest, ACallWaitsForTheOneBeforeInItsSlot) {
    one.holds = true;
    const std::uint64_t first = post_short(*zero, 1, StatRequest{kRoot});
    const std::uint64_t second = post_short(*zero, 1, StatRequest{kRoot});
    const std::uint64_t other = post_short(*zero, 2, StatRequest{kRoot});
    const std::uint64_t others = post_short(*zero, 1, StatRequest{kRoot}, 1);
    wire.pass(milliseconds(5));
    EXPECT_EQ(calls(), 3U);
    EXPECT_TRUE(one.foreign->is_unanswered());
    one.let_go();
    wire.pass(milliseconds(5));
    EXPECT_TRUE(zero->is_answered(first) && zero->is_answered(other) && zero->is_answered(others));
    EXPECT_FALSE(zero->outcomes.contains(second));
    EXPECT_EQ(calls(), 4U);
    one.let_go();
    wire.pass(milliseconds(5));
    EXPECT_TRUE(zero->is_answered(second));
    EXPECT_FALSE(one.foreign->is_unanswered());
}

// An unknown key ends the connection, and the call with it.
TEST_F(ForeignTest, DataThatCannotBeFetchedEndTheCall) {
    const WalkAnswer file = make(name_here());
    const std::uint64_t before = calls();
    std::vector<std::uint8_t> data(kMany, 5);
    copyrpc::Place from = open(data, verbs::Right::RemoteRead);
    from.rkey.value ^= 0x100;
    const std::uint64_t number = post(*zero, forward_of(client_of(0), 1, write_of(file, kMany), {}, from));
    ASSERT_TRUE(wire.pass_until([&] { return zero->outcomes.contains(number); }));
    EXPECT_FALSE(zero->is_answered(number));
    EXPECT_EQ(calls(), before);
    ASSERT_TRUE(wire.pass_until([&] { return one.has(0) && zero->has(1) && one.lost.size() == 1; }));
    EXPECT_EQ(ask<AttributesAnswer>(1, StatRequest{file.attributes.id}).attributes.size, 0U);  // the slot is free
}

TEST_F(ForeignTest, DataThatCannotBeDeliveredEndTheCall) {
    const WalkAnswer file = make(name_here());
    std::vector<std::uint8_t> data(kMany, 5);
    const std::uint64_t wrote =
        post(*zero, forward_of(client_of(0), 1, write_of(file, kMany), {}, open(data, verbs::Right::RemoteRead)));
    ASSERT_TRUE(wire.pass_until([&] { return zero->is_answered(wrote); }));
    std::vector<std::uint8_t> into(kMany);
    copyrpc::Place to = open(into, verbs::Right::RemoteRead);  // but not writable
    const std::uint64_t read = post(*zero, forward_of(client_of(0), 1, read_of(file, kMany), {}, to));
    ASSERT_TRUE(wire.pass_until([&] { return zero->outcomes.contains(read); }));
    EXPECT_FALSE(zero->is_answered(read));
    EXPECT_EQ(into, std::vector<std::uint8_t>(kMany));
    ASSERT_TRUE(wire.pass_until([&] { return one.has(0) && zero->has(1) && one.lost.size() == 1; }));
    EXPECT_EQ(ask<AttributesAnswer>(1, StatRequest{file.attributes.id}).attributes.size, kMany);
}

}  // namespace
}  // namespace cairn::fs
