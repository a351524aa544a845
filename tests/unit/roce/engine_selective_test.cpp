// Engines that hold packets that come early: only lost packets are sent again, and every buffer comes back.
#include "lib/roce/engine.hpp"
#include "tests/unit/roce/engine_host.hpp"

namespace cairn::roce {
namespace {

using enum WorkOpcode;
using Ids = std::vector<std::uint64_t>;

struct EngineSelective : EnginePair {
    static constexpr std::uint32_t kPackets = 24;

    void SetUp() override { start_with({}); }
    void start_with(const EngineConfig& config) {
        start(config);
        a->selective = b->selective = true;
        fill_a();
    }
    void write() { EXPECT_EQ(a->post(*qps.first, request(RdmaWrite, 1), 0, kPackets * 4096), PostVerdict::Posted); }
    [[nodiscard]] std::uint64_t resent() const { return a->engine.counters().of(EngineCounter::PacketsResent); }
    Ends qps{};
};

TEST_F(EngineSelective, OnlyWhatWasLostIsSentAgain) {
    qps = connect();
    a->port.fate = [](std::uint64_t number) { return number == 3 || number == 7 ? 0 : 1; };
    write();
    run();
    EXPECT_EQ(done(a->sends), Ids{1});
    EXPECT_EQ(resent(), 2U);
    EXPECT_TRUE(same(*a, 0, *b, kHalf, kPackets * 4096));
    EXPECT_EQ(b->engine.rc_counters().of(rc::RcCounter::Held), kPackets - 5U);  // between the losses, and after them
    EXPECT_EQ(b->engine.held_packets(), 0U);
    EXPECT_LE(b->port.buffers_in_use(), Sender::kStashBuffers);
}

TEST_F(EngineSelective, WhatFindsNoPlaceIsAskedForOnceAsTheGapCloses) {
    EngineConfig config;
    config.held_packets = 8;  // half of them for one connection
    start_with(config);
    qps = connect();
    a->port.fate = [](std::uint64_t number) { return number == 3 ? 0 : 1; };
    write();
    run();  // no time passes
    EXPECT_EQ(done(a->sends), Ids{1});
    EXPECT_EQ(resent(), kPackets - 3U - 4U);  // the lost packets, and those dropped after the four held ones
    // For the lost packets, again when the last packet asks, and for the dropped ones.
    EXPECT_EQ(b->engine.rc_counters().of(rc::RcCounter::NakSequenceSent), 3U);
    EXPECT_TRUE(same(*a, 0, *b, kHalf, kPackets * 4096));
    EXPECT_LE(b->port.buffers_in_use(), Sender::kStashBuffers);
}

TEST_F(EngineSelective, NothingIsHeldThatThePortNeedsToReceive) {
    qps = connect();
    a->port.fate = [](std::uint64_t number) { return number == 3 ? 0 : 1; };
    b->port.spares_buffers = false;
    write();
    a->turn(now);
    b->turn(now);
    EXPECT_EQ(b->engine.held_packets(), 0U);
    run();
    EXPECT_EQ(done(a->sends), Ids{1});
    EXPECT_TRUE(same(*a, 0, *b, kHalf, kPackets * 4096));
}

TEST_F(EngineSelective, AQueuePairThatEndsGivesTheBuffersOfEarlyPacketsBack) {
    qps = connect();
    a->port.fate = [](std::uint64_t number) { return number == 3 ? 0 : 1; };
    write();
    a->turn(now);
    b->turn(now);
    EXPECT_GT(b->engine.held_packets(), 4U);
    EXPECT_GT(b->port.buffers_in_use(), b->engine.held_packets());
    b->engine.destroy_rc(*qps.second);
    EXPECT_EQ(b->engine.held_packets(), 0U);
    b->turn(now);
    EXPECT_LE(b->port.buffers_in_use(), Sender::kStashBuffers);
}

TEST_F(EngineSelective, AnEngineThatEndsGivesThemBackToo) {
    qps = connect();
    a->port.fate = [](std::uint64_t number) { return number == 0 ? 0 : 1; };
    write();
    a->turn(now);
    std::array<port::PacketRef, 32> burst;
    {
        UdMux datagrams(b->port);
        Sender sender(b->port);
        Engine other(datagrams, sender, EngineHost::with_seed({}), now);
        QpCapacity capacity;
        Engine::RcQp& qp = *other.create_rc(other.create_pd(), capacity, {b->sends, b->receives}).value();
        ASSERT_EQ(qp.pair.qpn(), qps.second->pair.qpn());  // the same seed
        QpAttributes values = attributes_to(*qps.first);
        values.selective = true;
        const AttributeSet own = AttributeSet::of(Attribute::Selective);
        ASSERT_EQ(other.modify(qp, QpState::Init, rc::kToInit, values), std::nullopt);
        port::Path* const path = b->port.open_path({b->port.local_address(), a->port.local_address(), 0xc000, 0}, now);
        ASSERT_EQ(other.modify(qp, QpState::Rtr, rc::kToRtr.with(own), values, path), std::nullopt);
        other.on_packets(std::span(burst).first(b->port.receive_burst(burst, now)), now);
        EXPECT_GT(other.held_packets(), 4U);
    }
    EXPECT_EQ(b->port.buffers_in_use(), 0U);
}

}  // namespace
}  // namespace cairn::roce
