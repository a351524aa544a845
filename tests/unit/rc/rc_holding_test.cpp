// Selective retransmission between Cairn peers, at the responder: early packets are held, reported and taken in order.
// Linux lacks this feature, so there is no golden trace of it.
#include <gtest/gtest.h>

#include "tests/unit/rc/rc_requester_fixture.hpp"

namespace cairn::roce::rc {
namespace {

using Map = std::vector<std::uint8_t>;

struct RcHolding : testing::Test {
    RcHost host;
    Psn psn{0xfffff0};
    std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(256);

    void SetUp() override { start(host); }

    static void start(RcHost& one) {
        QpAttributes values = RcHost::usual_attributes();
        values.selective = true;
        one.bring_to(QpState::Rts, values);
    }
    wire::Packet make(Operation operation, std::uint32_t at, bool ack = false) {
        wire::Packet packet(wire::Service::Rc, operation);
        wire::Bth bth;
        bth.psn = psn.plus(at);
        bth.ack_request = ack;
        packet.set_bth(bth);
        return packet;
    }
    // WRITEs one byte, the number of the packet, to one place: the last taken packet is visible there.
    void write(std::uint32_t at, bool ack = false) {
        wire::Packet packet = make(Operation::WriteOnly, at, ack);
        bytes[0] = static_cast<std::uint8_t>(at);
        packet.set_payload(std::span(bytes).first(1));
        packet.set(wire::Reth{RcHost::kBase, host.key, 1});
        host.take(packet);
    }
    // Returns the map of the only answer, a NAK of that PSN. The map of a plain NAK is empty.
    Map nak(std::uint32_t at) {
        const std::vector<Datagram> all = host.poll_all();
        EXPECT_EQ(all.size(), 1U);
        if (all.size() != 1) {
            return {};
        }
        const wire::Packet packet = packet_of(all[0]);
        EXPECT_EQ(packet.bth().psn, psn.plus(at));
        EXPECT_TRUE(packet.get<wire::Aeth>().syndrome == wire::Aeth::Syndrome(NakCode::PsnSequence));
        EXPECT_EQ(packet.traits().operation,
                  packet.payload().empty() ? Operation::Acknowledge : Operation::ReadResponseOnly);
        return {packet.payload().begin(), packet.payload().end()};
    }
    void expect_ack(std::uint32_t at) {
        const std::vector<Datagram> all = host.poll_all();
        ASSERT_EQ(all.size(), 1U);
        EXPECT_EQ(packet_of(all[0]).traits().operation, Operation::Acknowledge);
        EXPECT_EQ(packet_of(all[0]).bth().psn, psn.plus(at));
    }
    std::uint8_t last_taken() { return *host.at(RcHost::kBase); }
};

// (9.7.5.2.8)
TEST_F(RcHolding, APeerThatIsPutOffIsToldOfNoGap) {
    wire::Packet send = make(Operation::SendOnly, 0);
    send.set_payload(std::span(bytes).first(1));
    host.take(send);  // no receive request
    ASSERT_EQ(host.poll_all().size(), 1U);
    ASSERT_EQ(host.counters.of(RcCounter::RnrNakSent), 1U);
    write(1);
    write(3, true);
    EXPECT_TRUE(host.poll_all().empty());
    EXPECT_EQ(host.counters.of(RcCounter::NakSequenceSent), 0U);
    EXPECT_EQ(host.kept.size(), 2U);
    ASSERT_EQ(host.post_receive(1, RcHost::kBase, 64), PostVerdict::Posted);
    host.take(send);
    EXPECT_EQ(last_taken(), 1);
    EXPECT_EQ(host.kept.size(), 1U);
}

TEST_F(RcHolding, WhatComesEarlyIsTakenInOrderWhenTheGapIsFilled) {
    write(0);
    write(2);
    write(3);
    write(4, true);
    EXPECT_EQ(last_taken(), 0);
    EXPECT_EQ(nak(1), (Map{0b0000'0111, 0, 0, 0}));
    EXPECT_EQ(host.kept.size(), 3U);
    write(1);
    EXPECT_EQ(last_taken(), 4);
    EXPECT_TRUE(host.kept.empty());
    expect_ack(4);
    EXPECT_EQ(host.counters.of(RcCounter::Held), 3U);
}

TEST_F(RcHolding, EachNewGapIsReportedWithAllThatIsHeld) {
    write(2);
    EXPECT_EQ(nak(0), (Map{0b10, 0, 0, 0}));
    write(3);
    EXPECT_TRUE(host.poll_all().empty());  // no new packet is missing
    write(40);
    EXPECT_EQ(nak(0), (Map{0b110, 0, 0, 0, 0x80, 0, 0, 0}));
    write(3);
    EXPECT_TRUE(host.poll_all().empty());
    write(3, true);  // the peer asks
    EXPECT_EQ(nak(0).size(), 8U);
    write(1);
    write(0);
    EXPECT_EQ(last_taken(), 3);
    EXPECT_EQ(host.kept.size(), 1U);
    write(41, true);
    EXPECT_EQ(nak(4).size(), 8U);
}

TEST_F(RcHolding, AReportNotYetSentOutlivesTheFillingOfOneOfTwoGaps) {
    write(1);
    write(3);
    write(0);
    EXPECT_EQ(nak(2), (Map{1, 0, 0, 0}));
}

TEST_F(RcHolding, OnlySoMuchIsHeldSoFar) {
    write(kHeldPackets);
    EXPECT_EQ(host.kept.size(), 1U);
    EXPECT_EQ(nak(0).size(), kHeldMapBytes);
    write(kHeldPackets + 1, true);
    EXPECT_EQ(host.kept.size(), 1U);
    EXPECT_EQ(nak(0).back(), 0x80);
}

TEST_F(RcHolding, WithoutRoomItGoesBackLikeAnyOther) {
    HeldPackets few(1);
    QpContext context{host.memory, host.send_completions, host.receive_completions, host.counters};
    context.held = &few;
    QueuePair one(Qpn{1}, host.pd, {}, context);
    const auto bring = [](QueuePair& qp) {
        QpAttributes values = RcHost::usual_attributes();
        values.selective = true;
        ASSERT_EQ(qp.modify(QpState::Init, kToInit, values), std::nullopt);
        ASSERT_EQ(qp.modify(QpState::Rtr, kToRtr, values), std::nullopt);
    };
    bring(one);
    const Datagram early = datagram_of(make(Operation::SendOnly, 2));
    const Datagram earlier = datagram_of(make(Operation::SendOnly, 1));
    EXPECT_TRUE(one.on_packet(packet_of(early), {early, &one}, {}));
    EXPECT_FALSE(one.on_packet(packet_of(early), {early, &one}, {}));
    EXPECT_FALSE(one.on_packet(packet_of(earlier), {earlier, &one}, {}));
    one.on_packet(packet_of(early), {});  // no buffer is offered
    ASSERT_EQ(one.modify(QpState::Err, {}, {}), std::nullopt);
    std::array<void*, 2> cookies{};
    EXPECT_EQ(few.poll_released(cookies), 1U);
    EXPECT_EQ(cookies[0], &one);
    // A queue pair that was not asked to hold packets holds none.
    RcHost plain;
    plain.bring_to(QpState::Rts);
    plain.take(early);
    EXPECT_TRUE(plain.kept.empty());
    EXPECT_EQ(plain.poll_all().size(), 1U);
}

TEST_F(RcHolding, EveryEndGivesTheBuffersBack) {
    for (const QpState end : {QpState::Reset, QpState::Err}) {
        RcHost one;
        start(one);
        one.take(make(Operation::SendOnly, 3));
        EXPECT_EQ(one.held.in_use(), 1U);
        ASSERT_EQ(one.qp->modify(end, {}, {}), std::nullopt);
        EXPECT_EQ(one.held.in_use(), 0U);
    }
    write(3);
    host.take(make(Operation::SendMiddle, 0));  // refused
    EXPECT_EQ(host.qp->state(), QpState::Err);
    EXPECT_EQ(host.held.in_use(), 0U);
    RcHost last;
    start(last);
    last.take(make(Operation::SendOnly, 3));
    last.qp.reset();
    EXPECT_EQ(last.held.in_use(), 0U);
}

// Four seconds without progress: the missing packet no longer comes.
TEST_F(RcHolding, WhatIsHeldBehindAGapThatStaysIsGivenUpAndAskedForAgainIfTheGapCloses) {
    const Instant start{1'000'000};
    const auto write_at = [this](std::uint32_t at, Instant now) {
        wire::Packet packet = make(Operation::WriteOnly, at);
        bytes[0] = static_cast<std::uint8_t>(at);
        packet.set_payload(std::span(bytes).first(1));
        packet.set(wire::Reth{RcHost::kBase, host.key, 1});
        host.take(packet, now);
    };
    write_at(1, start);
    write_at(3, start + seconds(1));
    write_at(5, start + seconds(2));
    EXPECT_EQ(host.qp->next_deadline(), start + kHeldFor);
    write_at(0, start + seconds(3));  // and 1
    EXPECT_EQ(host.qp->next_deadline(), start + seconds(3) + kHeldFor);
    (void)host.poll_all();
    host.qp->on_timeout(start + seconds(3) + kHeldFor - microseconds(1));
    EXPECT_EQ(host.held.in_use(), 2U);
    host.qp->on_timeout(start + seconds(3) + kHeldFor);
    EXPECT_EQ(host.held.in_use(), 0U);
    EXPECT_EQ(host.qp->next_deadline(), Instant::never());
    EXPECT_EQ(host.counters.of(RcCounter::HeldInVain), 1U);
    write_at(2, start + seconds(8));
    EXPECT_EQ(nak(3), Map{});
    write_at(3, start + seconds(8));
    write_at(4, start + seconds(8));
    EXPECT_EQ(last_taken(), 4);
}

// Two peers that never send a missing packet leave enough for the lost packets of a third one.
TEST(HeldPackets, FewPeersDoNotHoldWhatOthersNeed) {
    HeldPackets held(512);
    const std::array<std::uint8_t, 4> bytes{};
    const auto hold = [&](HeldPackets::Chain& chain, std::uint32_t most) {
        std::uint32_t count = 0;
        while (count < most && held.hold(chain, Psn{count}, {bytes, &held})) {
            ++count;
        }
        return count;
    };
    std::array<HeldPackets::Chain, 3> chains;
    EXPECT_EQ(hold(chains[0], 512), 256U);  // up to the end of a map
    EXPECT_EQ(hold(chains[1], 512), 128U);
    EXPECT_EQ(hold(chains[2], 512), 64U);
    held.release_front(chains[2]);
    std::array<void*, 512> cookies{};
    EXPECT_EQ(held.poll_released(cookies), 1U);
    EXPECT_TRUE(held.hold(chains[2], Psn{100}, {bytes, &held}));
    for (HeldPackets::Chain& chain : chains) {
        held.release_all(chain);
    }
    EXPECT_EQ(held.poll_released(cookies), 448U);
    EXPECT_EQ(held.in_use(), 0U);
    EXPECT_EQ(hold(chains[2], 512), 256U);
}

TEST_F(RcHolding, AHeldSendThatFindsNoReceiveIsAskedForAgain) {
    host.take(make(Operation::SendOnly, 1));
    write(2);
    EXPECT_EQ(nak(0), (Map{0b11, 0, 0, 0}));
    write(0);
    const std::vector<Datagram> all = host.poll_all();
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(packet_of(all[0]).bth().psn, psn.plus(1));
    EXPECT_TRUE(std::holds_alternative<wire::RnrTimer>(packet_of(all[0]).get<wire::Aeth>().syndrome));
    write(3);
    EXPECT_EQ(host.kept.size(), 2U);
    EXPECT_TRUE(host.poll_all().empty());  // it waits, no packet is lost
    ASSERT_EQ(host.post_receive(1, RcHost::kBase + 8, 8), PostVerdict::Posted);
    host.take(make(Operation::SendOnly, 1, true));
    EXPECT_EQ(last_taken(), 3);
    expect_ack(3);
}

TEST_F(RcHolding, AHeldReadIsAnsweredInItsTurnAndItsPsnsAreItsOwn) {
    wire::Packet read = make(Operation::ReadRequest, 1);
    read.set(wire::Reth{RcHost::kBase, host.key, 600});
    host.take(read);
    write(2);  // a request among the responses: the peer is broken
    write(4);
    EXPECT_EQ(nak(0), (Map{0b1011, 0, 0, 0}));
    write(0);
    EXPECT_EQ(last_taken(), 4);
    EXPECT_TRUE(host.kept.empty());
    EXPECT_EQ(host.poll_all().size(), 3U);
}

}  // namespace
}  // namespace cairn::roce::rc
