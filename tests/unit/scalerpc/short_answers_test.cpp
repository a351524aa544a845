// Answers that are sent in place, and the memory of a client.
#include <malloc.h>

#include <algorithm>

#include "rpc/scalerpc/peers.hpp"
#include "tests/unit/scalerpc/many_clients.hpp"

namespace cairn::scalerpc {
namespace {

class ScalerpcShortAnswers : public ManyClients {
protected:
    // Ends both for another begin().
    void end() {
        client.reset();
        server.reset();
        sessions.clear();
        results.clear();
    }
};

TEST(ScalerpcMemory, AQueuePairTakesFourKilobytesAtMost) {
    for (const BlockShape shape : {BlockShape{128, 16}, BlockShape{128, 4}, BlockShape{4096, 8}}) {
        EndpointConfig config;
        config.shape = shape;
        EXPECT_LE(verbs::idle_qp_bytes(qp_capacity(config)), 4096U) << shape.blocks << " blocks";
        EXPECT_GE(bytes_of_guest(config), verbs::idle_qp_bytes(qp_capacity(config)) + Guest::bytes_for(shape));
        EXPECT_GE(Guest::bytes_for(shape), ShortAnswers::session_bytes(shape));
    }
}

// The heap memory of a queue pair is as documented.
TEST_F(ScalerpcShortAnswers, AQueuePairTakesWhatIsSaidOfIt) {
    constexpr std::size_t kPairs = 32;
    const EndpointConfig config = small(2);
    begin(config, 1);
    const std::unique_ptr<verbs::Pd> pd = server->device->create_pd();
    const auto sends = server->device->create_cq(64).value();
    const auto receives = server->device->create_cq(64).value();
    std::vector<std::unique_ptr<verbs::Qp>> pairs;
    pairs.reserve(kPairs);
    const std::size_t before = mallinfo2().uordblks;
    for (std::size_t i = 0; i < kPairs; ++i) {
        pairs.push_back(server->device->create_qp(*pd, qp_capacity(config), {*sends, *receives}).value());
    }
    const std::size_t each = (mallinfo2().uordblks - before) / kPairs;
    if (each == 0) {
        GTEST_SKIP() << "this heap counts nothing";
    }
    EXPECT_GE(each + 64, verbs::idle_qp_bytes(qp_capacity(config)));
    EXPECT_LE(each, verbs::idle_qp_bytes(qp_capacity(config)) * 11 / 10);
}

// Answers carry no bytes that another client left in its rooms.
TEST_F(ScalerpcShortAnswers, RoomsAreEmptyWhenASessionBegins) {
    begin(small(2), 1);
    const std::unique_ptr<verbs::Pd> pd = server->device->create_pd();
    ShortAnswers answers({256, 4});
    ASSERT_TRUE(answers.open(*server->device, *pd, 2).ok());
    const std::span<std::uint8_t> first = answers.give(SessionId{0});
    const std::span<std::uint8_t> second = answers.give(SessionId{1});
    std::fill(first.begin(), first.end(), std::uint8_t{1});
    std::fill(second.begin(), second.end(), std::uint8_t{2});
    EXPECT_TRUE(std::all_of(first.begin(), first.end(), [](std::uint8_t byte) { return byte == 1; }));
    const std::span<std::uint8_t> anew = answers.give(SessionId{1});
    EXPECT_EQ(anew.data(), second.data());
    EXPECT_EQ(anew.size(), 4U * 256U);
    EXPECT_TRUE(std::all_of(anew.begin(), anew.end(), [](std::uint8_t byte) { return byte == 0; }));
    EXPECT_EQ(first.front(), 1);
    answers.close();
}

// The answers come, and their acknowledgements are lost for some time. So rooms are overwritten until the send queue is
// full, and all of its WRITEs are sent again.
TEST_F(ScalerpcShortAnswers, WhatIsSentAgainIsNoOtherAnswer) {
    EndpointConfig config = small(1);
    config.shape = {128, 4};
    begin(config, 1);
    again = true;
    for (std::uint32_t i = 0; i < config.shape.blocks; ++i) {
        post(0, 32 + 8 * i);
    }
    for (int i = 0; i < 4; ++i) {
        client->port.carries_least = 40;
        run(milliseconds(30));
        client->port.carries_least = 0;
        run(milliseconds(30));
    }
    again = false;
    run(milliseconds(300));
    EXPECT_GT(counted().requests_handled, 100U * config.shape.blocks);
    EXPECT_EQ(count(CallStatus::Ok), results.size());
    EXPECT_GT(server->worker->engine().counters().of(roce::EngineCounter::PacketsResent), 0U);
    EXPECT_EQ(client->endpoint->calls_pending(), 0U);
    check();
}

// Eight requests come in one WRITE, and so do their answers, if a room is as long as a block.
TEST_F(ScalerpcShortAnswers, NeighboursAreOneWrite) {
    for (const std::uint32_t bytes : {128U, 512U}) {
        EndpointConfig config = small(1);
        config.shape = {bytes, 8};
        begin(config, 1);
        std::uint64_t packets = 0;
        for (int i = 0; i < 3; ++i) {  // the first requests are READ
            const auto& counters = server->worker->engine().counters();
            const std::uint64_t before = counters.of(roce::EngineCounter::PacketsSent);
            for (std::uint32_t each = 0; each < config.shape.blocks; ++each) {
                post(0, 20 + each);
            }
            run(milliseconds(2));
            packets = counters.of(roce::EngineCounter::PacketsSent) - before;
        }
        EXPECT_EQ(count(CallStatus::Ok), 3U * config.shape.blocks);
        EXPECT_EQ(packets <= 3, bytes == 128) << packets << " packets with answers and an acknowledgement";
        check();
        end();
    }
}

// If there are more answers than slots in the send queue, they wait for a turn, and none is lost.
TEST_F(ScalerpcShortAnswers, AnswersThatFindNoSlotWait) {
    EndpointConfig config = small(1);
    config.shape = {128, 64};
    config.features.packing = false;
    begin(config, 1);
    for (std::uint32_t i = 0; i < 10 * config.shape.blocks; ++i) {
        post(0, 40);
    }
    run(milliseconds(20));
    EXPECT_EQ(count(CallStatus::Ok), 10U * config.shape.blocks);
    check();
}

}  // namespace
}  // namespace cairn::scalerpc
