// Congestion control of connections at exact times: marks, notifications, and the rate of a notified connection.
#include "tests/unit/roce/engine_host.hpp"

namespace cairn::roce {
namespace {

using enum WorkOpcode;
using rc::RcCounter;
using Ids = std::vector<std::uint64_t>;

constexpr std::uint32_t kPacketBytes = 4096;
// The bytes of a packet of a long WRITE after its first: BTH, ICRC, and all lower headers on the link.
constexpr std::uint32_t kMiddleBytes = kPacketBytes + 12 + 4 + 66;

bool every(std::uint64_t) {
    return true;
}

class EngineCongestion : public EnginePair {
protected:
    // At 8 Gbit/s the rate after the first notification is 4: 2 ns per byte.
    static EngineConfig config_of(ConnectionControl control = ConnectionControl::Dcqcn) {
        EngineConfig config;
        config.congestion = control;
        config.link_bits_per_s = 8e9;
        return config;
    }
    void SetUp() override { start(config_of()); }

    void send_notification(EngineHost& from, const EngineHost& to, Qpn qpn, bool damaged = false) {
        std::array<port::PacketRef, 1> buffer;
        ASSERT_EQ(from.port.allocate_burst(buffer), 1U);
        wire::Packet packet(wire::Service::Cnp, wire::Operation::CongestionNotification);
        wire::Bth bth;
        bth.becn = true;
        bth.dest_qpn = qpn;
        packet.set_bth(bth);
        buffer[0].len = static_cast<std::uint16_t>(packet.bytes());
        buffer[0].path = from.port.open_path({from.port.local_address(), to.port.local_address(), 0xc000, 0}, now);
        (void)packet.emit({buffer[0].data, buffer[0].len});
        std::array<port::TxPacket, 1> sent{{{buffer[0]}}};
        from.port.damages = damaged;
        ASSERT_EQ(from.port.transmit_burst(sent, now), 1U);
        from.port.damages = false;
    }
    void notify_a(const Engine::RcQp& at_a) {
        send_notification(*b, *a, at_a.pair.qpn());
        a->turn(now);
    }
    // Begins a WRITE of this many packets, notified of congestion before it begins.
    Ends begin_paced(std::uint32_t packets, const QpCapacity& capacity = {}) {
        const Ends ends = connect(capacity);
        fill_a();
        notify_a(*ends.first);
        EXPECT_EQ(a->post(*ends.first, request(RdmaWrite, 1), 0, packets * kPacketBytes), PostVerdict::Posted);
        return ends;
    }
    // Runs each turn when it is due, until `end`, or until both are idle.
    void run_until(Instant end) {
        while (now <= end) {
            run();
            now = std::max(std::min(a->engine.next_deadline(), b->engine.next_deadline()), now + nanoseconds(1));
        }
        now = end;
    }
    static std::uint64_t count(const EngineHost& host, RcCounter which) { return host.engine.rc_counters().of(which); }
};

TEST_F(EngineCongestion, TellsTheSenderOfMarksOnceIn50Microseconds) {
    Engine::RcQp* const at_a = connect().first;
    a->port.marks = every;
    const Instant begin = now;
    struct Step {
        Duration after;
        std::uint64_t told;
    };
    for (const Step step : {Step{{}, 1}, Step{microseconds(1), 1}, Step{nanoseconds(49'999), 1},
                            Step{microseconds(50), 2}, Step{microseconds(99), 2}, Step{microseconds(200), 3}}) {
        now = begin + step.after;
        ASSERT_EQ(a->post(*at_a, request(RdmaWrite), 0, 64), PostVerdict::Posted);
        run_until(now + nanoseconds(200));  // perhaps held back for a moment
        EXPECT_EQ(count(*b, RcCounter::CnpSent), step.told) << step.after.ns;
        EXPECT_EQ(count(*a, RcCounter::CnpReceived), step.told) << step.after.ns;
    }
    EXPECT_EQ(count(*b, RcCounter::Marked), 6U);
    EXPECT_EQ(done(a->sends).size(), 6U);
}

// Adapters of other makers write the same bytes.
TEST_F(EngineCongestion, ANotificationHasTheBytesOfAnnex17) {
    Engine::RcQp* const at_a = connect().first;
    a->port.marks = every;
    ASSERT_EQ(a->post(*at_a, request(RdmaWrite), 0, 64), PostVerdict::Posted);
    a->turn(now);
    b->turn(now);
    std::array<port::PacketRef, 4> burst;
    ASSERT_EQ(a->port.receive_burst(burst, now), 2U);  // and the acknowledgement
    std::vector<std::uint8_t> expected{0x81, 0, 0xff, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0};
    const std::uint32_t qpn = at_a->pair.qpn().value;
    expected[5] = static_cast<std::uint8_t>(qpn >> 16U);
    expected[6] = static_cast<std::uint8_t>(qpn >> 8U);
    expected[7] = static_cast<std::uint8_t>(qpn);
    expected.resize(12 + 16);
    const port::PacketRef& first = burst[0];
    EXPECT_EQ(std::vector(first.data, first.data + first.len - port::kIcrcBytes), expected);
    EXPECT_TRUE(first.icrc_ok);
    a->engine.on_packets(std::span(burst).first(2), now);
    EXPECT_EQ(count(*a, RcCounter::CnpReceived), 1U);
}

TEST_F(EngineCongestion, NobodyIsToldOfMarkedAcknowledgements) {
    const auto [at_a, at_b] = connect();
    b->port.marks = every;
    ASSERT_EQ(a->post(*at_a, request(RdmaWrite), 0, 64), PostVerdict::Posted);
    run();
    EXPECT_EQ(count(*a, RcCounter::Marked), 1U);
    EXPECT_EQ(count(*a, RcCounter::CnpSent), 0U);
    // The sender of marked READ responses is notified.
    ASSERT_EQ(a->post(*at_a, request(RdmaRead), 0, 64), PostVerdict::Posted);
    run();
    EXPECT_EQ(count(*a, RcCounter::CnpSent), 1U);
    EXPECT_TRUE(at_b->pair.paced());
}

TEST_F(EngineCongestion, ANotifiedConnectionSendsBatchesAtItsRate) {
    Engine::RcQp* const at_a = begin_paced(48).first;
    EXPECT_TRUE(at_a->pair.paced());
    EXPECT_DOUBLE_EQ(at_a->pair.flow()->rate_bytes_per_s(), 0.5e9);
    const Duration gap = nanoseconds(2 * kMiddleBytes);
    const Duration first_gap = gap + nanoseconds(2 * 16);  // plus an RETH
    const std::uint64_t before = a->port.sent();
    a->turn(now);
    EXPECT_EQ(a->port.sent() - before, 2U);  // the first packet has not paid for 10 us, the second has
    // Then the connection waits in no list until its sent packets are paid for: earlier turns do nothing.
    const Instant due = now + first_gap + gap;
    const Instant wakes = a->engine.next_deadline();
    EXPECT_GE(wakes, due);
    EXPECT_LT(wakes, due + kSlot);
    EXPECT_EQ(at_a->pair.next_deadline(), due);
    a->turn(due - nanoseconds(1));
    EXPECT_EQ(a->port.sent() - before, 2U);
    a->turn(wakes);
    EXPECT_EQ(a->port.sent() - before, 4U);
    EXPECT_EQ(at_a->pair.next_deadline(), due + gap + gap);  // the rounding to the wheel's slot is made up for
    EXPECT_EQ(count(*a, RcCounter::PacedTurns), 2U);
}

TEST_F(EngineCongestion, AStretchOfTimeCarriesWhatTheRateAllows) {
    (void)begin_paced(100);
    const std::uint64_t before = a->port.sent();
    run_until(now + microseconds(54));  // then the rate rises
    const std::uint64_t sent = (a->port.sent() - before) * kMiddleBytes;
    EXPECT_GE(sent, 54'000U / 2);
    EXPECT_LE(sent, (54'000U + 10'000U) / 2 + kMiddleBytes);
}

TEST_F(EngineCongestion, WithoutFurtherNotificationsItIsHeldBackNoLonger) {
    Engine::RcQp* const at_a = begin_paced(1).first;
    run_until(now + milliseconds(100));
    EXPECT_EQ(a->engine.next_deadline(), Instant::never());
    ASSERT_EQ(a->post(*at_a, request(RdmaWrite, 2), 0, 64 * kPacketBytes), PostVerdict::Posted);
    const std::uint64_t before = a->port.sent();
    a->turn(now);
    EXPECT_EQ(a->port.sent() - before, 32U);  // as in any turn
    EXPECT_FALSE(at_a->pair.paced());
    run();
    EXPECT_EQ(done(a->sends), (Ids{1, 2}));
}

TEST_F(EngineCongestion, AcknowledgementsDoNotWait) {
    const auto [at_a, at_b] = begin_paced(48);
    a->turn(now);
    ASSERT_NE(at_a->pair.next_deadline(), Instant::never());
    const std::uint64_t before = a->port.sent();
    SendRequest back = request(RdmaWrite, 7);
    back.rkey = a->key;
    ASSERT_EQ(b->post(*at_b, back, 0, 64), PostVerdict::Posted);
    b->turn(now);
    a->turn(now);
    EXPECT_EQ(a->port.sent() - before, 1U);
    b->turn(now);
    EXPECT_EQ(done(b->sends), Ids{7});
}

TEST_F(EngineCongestion, ReadResponsesKeepToTheRateOfWhoSendsThem) {
    const auto [at_a, at_b] = connect();
    send_notification(*a, *b, at_b->pair.qpn());
    b->turn(now);
    ASSERT_EQ(a->post(*at_a, request(RdmaRead, 3), 0, 40 * kPacketBytes), PostVerdict::Posted);
    a->turn(now);
    const std::uint64_t before = b->port.sent();
    b->turn(now);
    EXPECT_EQ(b->port.sent() - before, 2U);
    run_until(now + milliseconds(1));
    EXPECT_EQ(done(a->sends), Ids{3});
    EXPECT_EQ(count(*a, RcCounter::ImpliedNak) + count(*a, RcCounter::EarlyTimeout), 0U);
}

TEST_F(EngineCongestion, AnUnreliableConnectionIsPacedToo) {
    QpCapacity unreliable;
    unreliable.service = wire::Service::Uc;
    (void)begin_paced(10, unreliable);
    const std::uint64_t before = a->port.sent();
    a->turn(now);
    EXPECT_EQ(a->port.sent() - before, 2U);
    run_until(now + milliseconds(1));
    EXPECT_EQ(a->port.sent() - before, 10U);
    EXPECT_EQ(done(a->sends), Ids{1});
    EXPECT_TRUE(same(*a, 0, *b, kHalf, std::size_t{10} * kPacketBytes));
}

TEST_F(EngineCongestion, OthersCanNotHoldAConnectionBack) {
    Engine::RcQp* const at_a = connect().first;
    EngineHost stranger("10.0.0.3", config_of());
    stranger.port.join(a->port);
    send_notification(stranger, *a, at_a->pair.qpn());
    a->turn(now);
    EXPECT_EQ(a->engine.drops().of(Drop::WrongPeer), 1U);
    send_notification(*b, *a, Qpn{at_a->pair.qpn().value ^ 0x800000U});
    a->turn(now);
    EXPECT_EQ(a->engine.drops().of(Drop::UnknownQpn), 1U);
    send_notification(*b, *a, at_a->pair.qpn(), true);
    a->turn(now);
    EXPECT_EQ(a->engine.drops().of(Drop::BadIcrc), 1U);
    EXPECT_EQ(count(*a, RcCounter::CnpReceived), 0U);
    EXPECT_FALSE(at_a->pair.paced());
}

TEST_F(EngineCongestion, AQueuePairWithoutAConnectionHeedsNoNotification) {
    Engine::RcQp& unconnected = a->make_qp();
    send_notification(*b, *a, unconnected.pair.qpn());
    a->turn(now);
    EXPECT_EQ(count(*a, RcCounter::WrongState), 1U);
    EXPECT_FALSE(unconnected.pair.paced());
}

TEST_F(EngineCongestion, AQueuePairMayEndWhileItWaits) {
    for (const QpState end : {QpState::Err, QpState::Reset}) {
        Engine::RcQp* const at_a = begin_paced(48).first;
        a->turn(now);
        ASSERT_NE(a->engine.next_deadline(), Instant::never());
        ASSERT_EQ(a->engine.modify(*at_a, end, {}, {}), std::nullopt);
        EXPECT_EQ(at_a->pair.next_deadline(), Instant::never());
        EXPECT_FALSE(at_a->pair.paced());
        const std::uint64_t sent = a->port.sent();
        run_until(now + milliseconds(40));
        EXPECT_EQ(a->port.sent(), sent);
        const auto ended = rc::RcHost::drain(a->sends);
        EXPECT_EQ(ended.size(), end == QpState::Err ? 1U : 0U);
        a->engine.destroy_rc(*at_a);
    }
    Engine::RcQp* const last = begin_paced(48).first;
    a->turn(now);
    a->engine.destroy_rc(*last);
    EXPECT_EQ(a->engine.next_deadline(), Instant::never());
    run_until(now + milliseconds(40));
}

// Its next connection may take another route.
TEST_F(EngineCongestion, AQueuePairBeginsItsNextLifeAtLinkRate) {
    const auto [at_a, at_b] = begin_paced(4);
    a->turn(now);
    ASSERT_EQ(a->engine.modify(*at_a, QpState::Reset, {}, {}), std::nullopt);
    bring_up(*a, *at_a, *b, *at_b);
    EXPECT_FALSE(at_a->pair.flow().has_value());
    ASSERT_EQ(a->post(*at_a, request(RdmaWrite, 1), 0, 32 * kPacketBytes), PostVerdict::Posted);
    const std::uint64_t before = a->port.sent();
    a->turn(now);
    EXPECT_EQ(a->port.sent() - before, 32U);
}

// At the lowest rate a window takes 70 ms, and a packet 0.28. Answers are asked for so often that no timeout of 1 ms
// passes without one.
TEST_F(EngineCongestion, OnesOwnPausesAreNotTheSilenceOfThePeer) {
    a->ack_timeout = 8;
    Engine::RcQp* const at_a = connect().first;
    fill_a();
    a->port.marks = every;
    for (std::uint64_t i = 0; i < 3; ++i) {
        ASSERT_EQ(a->post(*at_a, request(RdmaWrite, i), 0, 100 * kPacketBytes), PostVerdict::Posted);
    }
    run_until(now + milliseconds(20));
    EXPECT_NEAR(at_a->pair.flow()->rate_bytes_per_s(), 15e6, 5e6);
    run_until(now + milliseconds(100));
    EXPECT_EQ(done(a->sends), (Ids{0, 1, 2}));
    EXPECT_EQ(count(*a, RcCounter::Timeout) + count(*a, RcCounter::EarlyTimeout), 0U);
    EXPECT_EQ(a->engine.counters().of(EngineCounter::PacketsResent), 0U);
    EXPECT_LT(at_a->pair.requester().round_trip().smoothed(), microseconds(1));
    EXPECT_TRUE(same(*a, 0, *b, kHalf, std::size_t{100} * kPacketBytes));
}

// The requester went back, and the rate kept the packet waiting: the peer's time begins when the packet leaves.
TEST_F(EngineCongestion, APeerHasItsTimeAlsoForWhatWasHeldBack) {
    a->ack_timeout = 6;  // 262 us
    Engine::RcQp* const at_a = connect().first;
    a->port.marks = every;
    for (int i = 0; i < 2; ++i) {
        ASSERT_EQ(a->post(*at_a, request(RdmaWrite), 0, 100 * kPacketBytes), PostVerdict::Posted);
    }
    run_until(now + milliseconds(20));
    ASSERT_NEAR(at_a->pair.flow()->rate_bytes_per_s(), 15e6, 5e6);
    ASSERT_TRUE(at_a->pair.has_unsent_requests());
    a->port.fate = [](std::uint64_t) { return 0; };
    const auto resent = [&] { return a->engine.counters().of(EngineCounter::PacketsResent); };
    const auto timeouts = [&] { return count(*a, RcCounter::Timeout); };
    const auto turn_until = [&](const auto& enough) {
        for (int turns = 0; !enough() && turns < 100; ++turns) {
            now = std::max(a->engine.next_deadline(), now + nanoseconds(1));
            a->turn(now);
        }
    };
    turn_until([&] { return resent() != 0; });
    EXPECT_EQ(timeouts(), 1U);
    const Instant left = now;
    turn_until([&] { return timeouts() != 1; });
    EXPECT_EQ(timeouts(), 2U);
    EXPECT_GE(now - left, rc::ack_timeout(6));
}

TEST_F(EngineCongestion, WithoutControlMarksAreCountedAndNothingElse) {
    start(config_of(ConnectionControl::None));
    Engine::RcQp* const at_a = connect().first;
    EXPECT_EQ(at_a->path->key().traffic_class, 0);
    at_a->path->set_traffic_class(2);
    a->port.marks = every;
    ASSERT_EQ(a->post(*at_a, request(RdmaWrite, 5), 0, 64), PostVerdict::Posted);
    run();
    EXPECT_EQ(count(*b, RcCounter::Marked), 1U);
    EXPECT_EQ(count(*b, RcCounter::CnpSent), 0U);
    notify_a(*at_a);
    EXPECT_EQ(count(*a, RcCounter::CnpReceived), 1U);
    EXPECT_FALSE(at_a->pair.paced());
    EXPECT_EQ(done(a->sends), Ids{5});
}

TEST_F(EngineCongestion, PathsOfConnectionsAreEcnCapableAndKeepTheirClass) {
    EXPECT_EQ(connect().first->path->key().traffic_class, 2);
    EngineHost classy("10.0.0.4", config_of());
    port::Path* const path = classy.port.open_path({classy.port.local_address(), a->port.local_address(), 7, 0x68}, {});
    Engine::RcQp& qp = classy.make_qp();
    QpAttributes values = attributes_to(qp);
    ASSERT_EQ(classy.engine.modify(qp, QpState::Init, rc::kToInit, values), std::nullopt);
    ASSERT_EQ(classy.engine.modify(qp, QpState::Rtr, rc::kToRtr, values, path), std::nullopt);
    EXPECT_EQ(path->key().traffic_class, 0x6a);
}

}  // namespace
}  // namespace cairn::roce
