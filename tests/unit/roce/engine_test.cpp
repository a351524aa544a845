// Two engines over a wire: where packets arrive, dropped packets and the reasons, turns, deadlines.
#include "lib/roce/engine.hpp"

#include "tests/unit/roce/engine_host.hpp"

namespace cairn::roce {
namespace {

using enum WorkOpcode;
using Ids = std::vector<std::uint64_t>;

TEST_F(EnginePair, CarriesEveryKindOfWork) {
    const auto [at_a, at_b] = connect();
    fill_a();
    for (const std::uint32_t bytes : {0U, 1U, 8U, 4095U, 4096U, 4097U, 65536U, 100003U}) {
        ASSERT_EQ(b->post_receive(*at_b, 0, 200000), PostVerdict::Posted);
        ASSERT_EQ(a->post(*at_a, request(RdmaWrite, 1), 0, bytes), PostVerdict::Posted);
        ASSERT_EQ(a->post(*at_a, request(RdmaRead, 2), kHalf, bytes), PostVerdict::Posted);
        ASSERT_EQ(a->post(*at_a, request(Send, 3), 0, bytes), PostVerdict::Posted);
        run();
        EXPECT_EQ(done(a->sends), (Ids{1, 2, 3})) << bytes;
        EXPECT_EQ(done(b->receives).size(), 1U) << bytes;
        EXPECT_TRUE(same(*a, 0, *b, kHalf, bytes) && same(*a, 0, *a, kHalf, bytes) && same(*a, 0, *b, 0, bytes))
            << bytes;
    }
    SendRequest add = request(FetchAdd, 9);
    add.swap_or_add = 5;
    std::memset(b->bytes.data() + kHalf, 0, 8);
    ASSERT_EQ(a->post(*at_a, add, 0, 8), PostVerdict::Posted);
    ASSERT_EQ(a->post(*at_a, add, 8, 8), PostVerdict::Posted);
    run();
    EXPECT_EQ(done(a->sends), (Ids{9, 9}));
    EXPECT_EQ(a->bytes[8], 5);
    EXPECT_EQ(b->bytes[kHalf], 10);
    EXPECT_LE(a->port.buffers_in_use() + b->port.buffers_in_use(), 64U);  // only the spare buffers of the senders
    EXPECT_EQ(a->engine.drops().total() + b->engine.drops().total(), 0U);
}

TEST_F(EnginePair, DropsDamagedPacketsAndCountsThem) {
    const auto [at_a, at_b] = connect();
    ASSERT_EQ(a->post(*at_a, request(RdmaWrite), 0, 64), PostVerdict::Posted);
    a->turn(now);
    std::array<port::PacketRef, 4> burst;
    const std::size_t received = b->port.receive_burst(burst, now);
    ASSERT_EQ(received, 1U);
    burst[0].icrc_ok = false;
    b->engine.on_packets(std::span(burst).first(received), now);
    EXPECT_EQ(b->engine.drops().of(Drop::BadIcrc), 1U);
    EXPECT_EQ(at_b->pair.responder().msn(), Msn{});
}

struct Bent {
    std::string_view name;
    void (*bend)(port::PacketRef& packet);
    std::uint64_t (*counted)(const Engine& engine);
};
const std::array kBent{
    Bent{"short", [](port::PacketRef& packet) { packet.len = 12; },
         [](const Engine& engine) { return engine.wire_drops().of(wire::Drop::Truncated); }},
    Bent{"version", [](port::PacketRef& packet) { packet.data[1] |= 1; },
         [](const Engine& engine) { return engine.wire_drops().of(wire::Drop::BadVersion); }},
    Bent{"opcode", [](port::PacketRef& packet) { packet.data[0] = 0x1f; },
         [](const Engine& engine) { return engine.wire_drops().of(wire::Drop::UnknownOpcode); }},
    Bent{"qpn", [](port::PacketRef& packet) { packet.data[5] ^= 0x80; },
         [](const Engine& engine) { return engine.drops().of(Drop::UnknownQpn); }},
    Bent{"service", [](port::PacketRef& packet) { packet.data[0] |= 0x20; },
         [](const Engine& engine) { return engine.rc_counters().of(rc::RcCounter::WrongService); }},
    Bent{"empty", [](port::PacketRef& packet) { packet.len = 0; },
         [](const Engine& engine) { return engine.wire_drops().of(wire::Drop::Truncated); }},
};

TEST_F(EnginePair, CountsWhatFitsNoConnectionByItsReason) {
    const auto [at_a, at_b] = connect();
    for (const Bent& bent : kBent) {
        ASSERT_EQ(a->post(*at_a, request(RdmaWrite), 0, 64), PostVerdict::Posted);
        a->turn(now);
        std::array<port::PacketRef, 4> burst;
        const std::size_t received = b->port.receive_burst(burst, now);
        ASSERT_EQ(received, 1U) << bent.name;
        const std::uint64_t before = bent.counted(b->engine);
        bent.bend(burst[0]);
        b->engine.on_packets(std::span(burst).first(received), now);
        EXPECT_EQ(bent.counted(b->engine), before + 1) << bent.name;
        EXPECT_EQ(at_b->pair.responder().msn(), Msn{}) << bent.name;
        EXPECT_EQ(b->port.buffers_in_use(), 0U) << bent.name;
    }
}

TEST_F(EnginePair, TakesNoPacketFromAnotherHostThanThePeer) {
    const auto [at_a, at_b] = connect();
    EngineHost stranger("10.0.0.3");
    stranger.port.join(b->port);
    Engine::RcQp& forged = stranger.make_qp();
    bring_up(stranger, forged, *b, *at_b);
    ASSERT_EQ(stranger.post(forged, request(RdmaWrite), 0, 64), PostVerdict::Posted);
    stranger.turn(now);
    b->turn(now);
    EXPECT_EQ(b->engine.drops().of(Drop::WrongPeer), 1U);
    ASSERT_EQ(a->post(*at_a, request(RdmaWrite, 4), 0, 64), PostVerdict::Posted);
    run();
    EXPECT_EQ(done(a->sends), Ids{4});
}

// The peer's port may change (its address may not): other hosts choose one per queue pair.
TEST_F(EnginePair, TakesPacketsOfThePeerFromAnyUdpPort) {
    const auto [at_a, at_b] = connect();
    port::Path* const other = a->port.open_path({a->port.local_address(), b->port.local_address(), 0xc123, 0}, {});
    QpAttributes values = attributes_to(*at_b);
    ASSERT_EQ(a->engine.modify(*at_a, QpState::Reset, {}, {}), std::nullopt);
    ASSERT_EQ(a->engine.modify(*at_a, QpState::Init, rc::kToInit, values), std::nullopt);
    ASSERT_EQ(a->engine.modify(*at_a, QpState::Rtr, rc::kToRtr, values, other), std::nullopt);
    ASSERT_EQ(a->engine.modify(*at_a, QpState::Rts, rc::kToRts, values), std::nullopt);
    ASSERT_EQ(a->post(*at_a, request(RdmaWrite, 4), 0, 64), PostVerdict::Posted);
    run();
    EXPECT_EQ(done(a->sends), Ids{4});
}

TEST_F(EnginePair, LetsNoQueuePairKeepOthersWaiting) {
    std::vector<Ends> all;
    for (int i = 0; i < 4; ++i) {
        all.push_back(connect());
    }
    ASSERT_EQ(a->post(*all[0].first, request(RdmaWrite, 1), 0, 100 * 4096), PostVerdict::Posted);
    for (std::size_t i = 1; i < all.size(); ++i) {
        ASSERT_EQ(a->post(*all[i].first, request(RdmaWrite, i + 1), 0, 8), PostVerdict::Posted);
    }
    a->turn(now);
    EXPECT_EQ(a->port.sent(), 32U + 3U);
    b->turn(now);
    b->turn(now);
    a->turn(now);
    EXPECT_EQ(done(a->sends), (Ids{2, 3, 4}));
    run();
    EXPECT_EQ(done(a->sends), Ids{1});
}

TEST_F(EnginePair, AnAcknowledgementLetsRequestsGoFirstByOneTurn) {
    const auto [at_a, at_b] = connect();
    ASSERT_EQ(a->post(*at_a, request(RdmaWrite, 1), 0, 8), PostVerdict::Posted);
    a->turn(now);
    ASSERT_EQ(b->post(*at_b, request(RdmaWrite, 2), 0, 8), PostVerdict::Posted);
    b->turn(now);
    EXPECT_EQ(b->port.sent(), 1U);
    a->turn(now);
    EXPECT_TRUE(done(a->sends).empty());
    EXPECT_EQ(b->engine.next_deadline(), Instant{});  // it is still owed
    ASSERT_EQ(b->post(*at_b, request(RdmaWrite, 3), 0, 8), PostVerdict::Posted);
    b->turn(now);
    EXPECT_EQ(b->port.sent(), 3U);
    a->turn(now);
    EXPECT_EQ(done(a->sends), Ids{1});
}

TEST_F(EnginePair, IdleConnectionsHaveNoDeadlineAndSendNothing) {
    for (int i = 0; i < 1000; ++i) {
        (void)connect({4, 4, 1, 0, 16});
    }
    run();
    EXPECT_EQ(a->engine.queue_pairs(), 1000U);
    EXPECT_EQ(a->engine.next_deadline(), Instant::never());
    EXPECT_EQ(a->port.sent(), 0U);
}

TEST_F(EnginePair, SendsAgainAtTheDeadlineOfItsQueuePair) {
    const auto [at_a, at_b] = connect();
    (void)at_b;
    a->port.fate = [](std::uint64_t number) { return number == 0 ? 0 : 1; };
    ASSERT_EQ(a->post(*at_a, request(RdmaWrite, 7), 0, 64), PostVerdict::Posted);
    run();
    EXPECT_TRUE(done(a->sends).empty());
    const Instant due = at_a->pair.next_deadline();
    EXPECT_EQ(due, now + rc::ack_timeout(14));
    // The engine's own timer may ring earlier, but never later, and at most once in its horizon.
    std::uint32_t rings = 0;
    while (a->engine.next_deadline() < due) {
        now = a->engine.next_deadline();
        run();
        ASSERT_LT(++rings, 10U);
    }
    EXPECT_EQ(a->engine.counters().of(EngineCounter::PacketsResent), 0U);
    now = a->engine.next_deadline();
    EXPECT_LT((now - due).ns, kSlot.ns + 1);
    run();  // it slept: one such pause defers the timer
    EXPECT_EQ(a->engine.counters().of(EngineCounter::PacketsResent), 0U);
    EXPECT_EQ(at_a->pair.next_deadline(), now + kRtoMin);
    now = a->engine.next_deadline();
    run();
    EXPECT_EQ(a->engine.counters().of(EngineCounter::PacketsResent), 1U);
    EXPECT_EQ(done(a->sends), Ids{7});
    now = now + milliseconds(200);
    run();
    EXPECT_EQ(a->engine.next_deadline(), Instant::never());
}

TEST_F(EnginePair, RecoversFromLosses) {
    std::uint64_t lost = 0;
    a->port.fate = b->port.fate = [&lost](std::uint64_t number) {
        const bool loses = number % 5 == 3;
        lost += loses ? 1 : 0;
        return loses ? 0 : 1;
    };
    const auto [at_a, at_b] = connect();
    (void)at_b;
    fill_a();
    for (std::uint64_t i = 0; i < 100; ++i) {
        ASSERT_EQ(a->post(*at_a, request(RdmaWrite, i), 0, 64), PostVerdict::Posted);
    }
    std::size_t completed = 0;
    for (int i = 0; i < 200 && completed < 100; ++i) {
        run();
        completed += done(a->sends).size();
        now = std::max(now, std::min(a->engine.next_deadline(), now + milliseconds(100)));
    }
    EXPECT_EQ(completed, 100U);
    EXPECT_GT(lost, 10U);
    EXPECT_TRUE(same(*a, 0, *b, kHalf, 64));
}

TEST_F(EnginePair, NumbersNameTheOwnerAndAreNotGivenAgainSoon) {
    EngineConfig config;
    config.owner_bits = 3;
    config.owner = 5;
    config.max_queue_pairs = 3;
    start(config);
    Engine::RcQp& first = a->make_qp();
    const Qpn qpn = first.pair.qpn();
    Engine::RcQp& second = a->make_qp();
    EXPECT_EQ(qpn.value & 7U, 5U);
    EXPECT_EQ(second.pair.qpn().value & 7U, 5U);
    a->engine.destroy_rc(first);
    EXPECT_NE(a->make_qp().pair.qpn(), qpn);
    EXPECT_TRUE(a->engine.create_rc(a->pd, {}, {a->sends, a->receives}).ok());
    const auto refused = a->engine.create_rc(a->pd, {}, {a->sends, a->receives});
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().text().find("max_queue_pairs"), std::string::npos);
    EXPECT_FALSE(b->engine.create_rc(Pd{77}, {}, {b->sends, b->receives}).ok());
}

TEST_F(EnginePair, DatagramsNeedNoPlaceAmongConnections) {
    EngineConfig config;
    config.max_queue_pairs = 2;
    start(config);
    for (int i = 0; i < 2; ++i) {
        const Qpn connection = a->make_qp().pair.qpn();
        EXPECT_NE(a->engine.create_ud(a->pd, {}, {a->sends, a->receives}).value()->qpn(), connection);
    }
    EXPECT_TRUE(a->engine.create_ud(a->pd, {}, {a->sends, a->receives}).ok());
    EXPECT_FALSE(a->engine.create_rc(a->pd, {}, {a->sends, a->receives}).ok());
}

TEST_F(EnginePair, MoreConnectionsThanAnOwnerHasNumbersForAreABug) {
    EngineConfig config;
    config.owner_bits = 8;
    config.max_queue_pairs = (1U << 15U) + 1;
    EXPECT_DEATH(start(config), "max_queue_pairs");
    --config.max_queue_pairs;
    start(config);
}

TEST_F(EnginePair, ReadyToReceiveTakesAPathAndAPathMtuThatThePortCarries) {
    Engine::RcQp& qp = a->make_qp();
    QpAttributes values = attributes_to(qp);
    ASSERT_EQ(a->engine.modify(qp, QpState::Init, rc::kToInit, values), std::nullopt);
    EXPECT_EQ(a->engine.modify(qp, QpState::Rtr, rc::kToRtr, values, nullptr), ModifyRefusal::BadValue);
    EXPECT_EQ(a->engine.modify(qp, QpState::Rts, rc::kToRtr, values, nullptr), ModifyRefusal::NoTransition);
    EXPECT_EQ(qp.pair.state(), QpState::Init);
    port::Path* const path = a->port.open_path({a->port.local_address(), b->port.local_address(), 0xc000, 0}, {});
    a->port.most_bytes = 2048;  // headers included
    values.path_mtu_bytes = 2048;
    EXPECT_EQ(a->engine.modify(qp, QpState::Rtr, rc::kToRtr, values, path), ModifyRefusal::BadValue);
    values.path_mtu_bytes = 1024;
    EXPECT_EQ(a->engine.modify(qp, QpState::Rtr, rc::kToRtr, values, path), std::nullopt);
}

TEST_F(EnginePair, AnUnreliableQueuePairLosesMessagesAndSaysNothing) {
    QpCapacity unreliable;
    unreliable.service = wire::Service::Uc;
    const auto [at_a, at_b] = connect(unreliable);
    a->port.fate = [](std::uint64_t number) { return number == 1 ? 0 : 1; };  // the end of the first message
    for (std::uint64_t i = 1; i <= 2; ++i) {
        ASSERT_EQ(b->post_receive(*at_b, 0, 200000), PostVerdict::Posted);
        ASSERT_EQ(a->post(*at_a, request(Send, i), 0, 2 * 4096), PostVerdict::Posted);
    }
    run();
    EXPECT_EQ(done(a->sends), (Ids{1, 2}));
    EXPECT_EQ(done(b->receives).size(), 1U);
    EXPECT_EQ(b->port.sent(), 0U);
    EXPECT_EQ(a->engine.next_deadline(), Instant::never());
}

}  // namespace
}  // namespace cairn::roce
