// Clients that write arbitrary bytes: their connection closes with a reason, and others stay open.
#include "tests/unit/scalerpc/stranger.hpp"

namespace cairn::scalerpc {
namespace {

TEST_F(ScalerpcStranger, AnHonestOneIsServed) {
    meet(small(16));
    enter_slice();
    EXPECT_EQ(grant.accepted, 1U);
    std::array<std::uint8_t, 16> payload{};
    payload[0] = 0xee;
    write_request({1, kEcho, 0, payload}, grant.epoch);
    run_all(milliseconds(1));
    const std::optional<Answer> answer = stranger.answer(shape, 1);
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->payload[0], 0xee);
    EXPECT_FALSE(stranger.ended || stranger.failed);
}

class ScalerpcBadEntry : public ScalerpcStranger, public testing::WithParamInterface<int> {};

TEST_P(ScalerpcBadEntry, EndsItsConnection) {
    meet(small(16));
    Entry bad = entry(0, 1);
    switch (GetParam()) {
        case 0:
            bad = entry(1, 1);
            break;
        case 1:
            bad.count = shape.blocks + 1;
            break;
        case 2:
            bad.longest = shape.bytes + 1;
            break;
        default:
            bad.address += 8;
            break;
    }
    stranger.write_entry(bad);
    run_all(milliseconds(2));
    EXPECT_EQ(breaches(Breach::BadEntry), 1U);
    EXPECT_TRUE(stranger.ended);
    expect_service();
}

INSTANTIATE_TEST_SUITE_P(Kinds, ScalerpcBadEntry, testing::Range(0, 4));

TEST_F(ScalerpcStranger, StagedNonsenseEndsItsConnection) {
    meet(small(16));
    stranger.write_entry(entry(0, 2));
    run_all(milliseconds(2));
    EXPECT_EQ(breaches(Breach::BadFetch), 1U);
    EXPECT_TRUE(stranger.ended);
    expect_service();
}

// The key that it showed is invalid.
TEST_F(ScalerpcStranger, RequestsThatCannotBeReadEndTheirConnection) {
    shape = small(16).shape;
    begin(small(16), 1);
    stranger.port.join(server->port);
    server->port.join(stranger.port);
    Hello hello;
    hello.shape = shape;
    hello.staged = {stranger.mr->address(), Rkey{0x1234}};
    hello.answers = {stranger.mr->address() + Stranger::kAnswersOffset, stranger.mr->rkey()};
    stranger.ask(hello, now);
    run_all(milliseconds(3));
    stranger.write_entry(entry(0, 1));
    run_all(milliseconds(20));
    EXPECT_EQ(counted().links.peers_lost, 1U);
    expect_service();
    EXPECT_EQ(server->endpoint->slices().pools().tenants(0).size(), 1U) << "its place is free";
}

TEST_F(ScalerpcStranger, NonsenseInItsBlocksEndsItsConnection) {
    meet(small(16));
    enter_slice();
    std::vector<std::uint8_t> block(shape.bytes);
    (void)put_request({1, kEcho, 0, {}}, grant.epoch, block);
    block[shape.bytes - sizeof(RawTrailer) + 16] = 0x7f;  // its length
    stranger.write(block, grant.grant.address + shape.end_of(1) - shape.bytes, grant.grant.rkey);
    run_all(milliseconds(2));
    EXPECT_EQ(breaches(Breach::BadBlock), 1U);
    EXPECT_TRUE(stranger.ended);
    expect_service();
}

// Within one slice, the next owner of a gone client's blocks finds nothing of it there.
TEST_F(ScalerpcStranger, WhatSomebodyLeftIsNotExecutedForAnother) {
    meet(small(16));
    enter_slice();
    const std::uint64_t tag = 0xabcdef;
    std::array<std::uint8_t, 16> payload{};
    std::memcpy(payload.data(), &tag, sizeof(tag));
    write_request({2, kEcho, 0, payload}, grant.epoch);  // the server waits for the one before it
    run_all(milliseconds(1));
    std::vector<std::uint8_t> block(shape.bytes);
    (void)put_request({1, kEcho, 0, {}}, grant.epoch, block);
    block[shape.bytes - sizeof(RawTrailer) + 16] = 0x7f;
    stranger.write(block, grant.grant.address + shape.end_of(1) - shape.bytes, grant.grant.rkey);
    run_all(milliseconds(2));
    ASSERT_TRUE(stranger.ended);
    for (int i = 0; i < 4; ++i) {
        expect_service();
    }
    EXPECT_EQ(executed.count(tag), 0U);
    EXPECT_EQ(breaches(Breach::BadBlock), 1U);
}

TEST_F(ScalerpcStranger, ARequestOverAnotherThatIsNotAnsweredEndsItsConnection) {
    meet(small(16));
    enter_slice();
    std::array<std::uint8_t, 16> payload{};
    for (std::uint32_t sequence = 1; sequence <= shape.blocks + 1; ++sequence) {
        write_request({sequence, kKeep, 0, payload}, grant.epoch);
        run_all(microseconds(50));
    }
    EXPECT_EQ(breaches(Breach::Overdrawn), 1U);
    EXPECT_EQ(kept.size(), shape.blocks);
    EXPECT_EQ(server->endpoint->server().requests_kept(), 0U) << "they are forgotten with it";
    EXPECT_FALSE(server->endpoint->refuse(kept[0], now));
    expect_service();
}

// A key opens the blocks of one client: neither those of others, nor the entries.
TEST_F(ScalerpcStranger, NobodyWritesOutsideOfItsBlocks) {
    meet(small(16));
    enter_slice();
    const std::array<std::uint8_t, 8> bytes{1, 2, 3};
    stranger.write(bytes, grant.grant.address + shape.session_bytes(), grant.grant.rkey);
    run_all(milliseconds(2));
    EXPECT_TRUE(stranger.failed);
    expect_service();
    run_all(milliseconds(800));
    EXPECT_EQ(counted().links.peers_lost, 1U) << "the next probe finds its queue pair stopped";
}

TEST_F(ScalerpcStranger, NobodyWritesOutsideOfItsEntry) {
    meet(small(16));
    const std::array<std::uint8_t, 8> bytes{1, 2, 3};
    stranger.write(bytes, stranger.welcome().grant.address - kEntryBytes, stranger.welcome().grant.rkey);
    run_all(milliseconds(2));
    EXPECT_TRUE(stranger.failed);
    expect_service();
}

// A client that does not leave its slice loses its key. Its later writes end its connection, and reach no other client.
TEST_F(ScalerpcStranger, WhoStaysLosesItsKey) {
    outlast_slice(milliseconds(2), milliseconds(10));
    EXPECT_GE(counted().switches, 3U);
    EXPECT_EQ(counted().keys_ended, 1U);
    EXPECT_FALSE(stranger.ended) << "being slow is no crime";
    std::array<std::uint8_t, 16> payload{};
    write_request({1, kEcho, 0, payload}, grant.epoch);
    run_all(milliseconds(10));
    EXPECT_TRUE(stranger.failed);
    again = false;
    run_all(milliseconds(10));
    EXPECT_EQ(client->endpoint->calls_pending(), 0U);
    EXPECT_EQ(count(CallStatus::Ok), results.size());
    check();
}

// A write for a slice that is over, from a client that still has its key: it is executed neither then nor later.
TEST_F(ScalerpcStranger, ALateWriteIsNotExecuted) {
    outlast_slice(seconds(1), milliseconds(5));
    EXPECT_EQ(stranger.control().kind, News::Kind::Notice);
    const std::uint64_t tag = 0xabcdef;
    std::array<std::uint8_t, 16> payload{};
    std::memcpy(payload.data(), &tag, sizeof(tag));
    write_request({1, kEcho, 0, payload}, grant.epoch);
    run_all(milliseconds(10));
    EXPECT_EQ(executed.count(tag), 0U);
    EXPECT_FALSE(stranger.failed || stranger.ended);
    (void)put_request({1, kEcho, 0, payload}, kStaged, staged(1));
    stranger.write_entry(entry(1, 1, grant.epoch));
    run_all(milliseconds(5));
    EXPECT_EQ(executed[tag], 1) << "it waited for the next slice";
    again = false;
    run_all(milliseconds(5));
    check();
}

// A client that acknowledges no packet blocks the requests posted for it. Its place is still given away once it has
// said that it left, so its key is dead by then.
TEST_F(ScalerpcStranger, AKeyEndsBeforeItsPlaceIsGivenAway) {
    outlast_slice(seconds(1), milliseconds(5));
    ASSERT_EQ(stranger.control().kind, News::Kind::Notice);
    Session* const left = of_stranger();
    ASSERT_NE(left, nullptr);
    ASSERT_EQ(left->qp->modify(verbs::QpState::Sqd), std::nullopt);  // no request of its queue is executed
    stranger.write_entry(entry(1, 0, grant.epoch));
    run_all(microseconds(100));
    ASSERT_FALSE(left->guest->berth.has_value());
    std::array<std::uint8_t, 16> payload{};
    write_request({1, kEcho, 0, payload}, grant.epoch);
    run_all(milliseconds(2));
    EXPECT_TRUE(stranger.failed);
    again = false;
    run_all(milliseconds(10));
    EXPECT_EQ(client->endpoint->calls_pending(), 0U);
    EXPECT_EQ(count(CallStatus::Ok), results.size());
}

// Its peer acknowledges nothing, so that not even a probe can be posted.
TEST_F(ScalerpcStranger, AFullQueueIsAsSilentAsAPeer) {
    meet(small(16));
    enter_slice();
    Session* const session = server->endpoint->slices().pools().tenants(0).front();
    verbs::SendRequest write;
    write.opcode = verbs::WorkOpcode::RdmaWrite;
    write.signalled = false;
    write.remote_address = session->peer.answers.address;
    write.rkey = session->peer.answers.rkey;
    while (session->qp->post_send(write) == verbs::PostVerdict::Posted) {
    }
    session->heard = false;
    session->probed = false;
    int looks = 1;
    while (looks < 20 && !rpc::Probes::is_lost(*session, write.rkey, write.remote_address)) {
        ++looks;
    }
    EXPECT_EQ(looks, 8);
}

// Its READ is answered after the slice's usual end, and its own group is next again since no other client asks.
TEST_F(ScalerpcStranger, ASlowClientIsServedBesideFastOnesOfItsGroup) {
    meet(small(32), 14);
    const Groups& groups = server->endpoint->slices().groups();
    ASSERT_EQ(groups.size(), 2U);
    const std::size_t own = groups.group_of(SessionId{14});
    again = true;
    for (std::uint16_t i = 0; i < 14; ++i) {
        if (groups.group_of(SessionId{i}) == own) {
            post(i);
        }
    }
    run_all(milliseconds(2));
    const std::array<std::uint8_t, 16> payload{};
    (void)put_request({0, kEcho, 0, payload}, kStaged, staged(0));
    stranger.write_entry(entry(0, 1));
    for (int i = 0; i < 4000 && !stranger.answer(shape, 0); ++i) {
        now = now + microseconds(5);
        client->turn(now);
        server->turn(now);
        if (i % 31 == 0) {
            stranger.worker->turn(now);
            stranger.look();
        }
    }
    EXPECT_TRUE(stranger.answer(shape, 0).has_value());
    again = false;
    run_all(milliseconds(10));
}

TEST_F(ScalerpcStranger, BlocksOfAnotherShapeAreRefused) {
    begin(small(16), 1);
    stranger.port.join(server->port);
    server->port.join(stranger.port);
    stranger.ask(BlockShape{512, 4}, now);
    run_all(milliseconds(5));
    EXPECT_TRUE(stranger.refused);
    EXPECT_EQ(counted().links.refused, 1U);
    expect_service();
}

}  // namespace
}  // namespace cairn::scalerpc
