// The requester with peers that acknowledge by count or time: when it asks, and that a delay counts neither as a loss
// nor as a round trip. Both ends over a link: how many packets a call takes.
#include <gtest/gtest.h>

#include "tests/unit/rc/rc_requester_fixture.hpp"

namespace cairn::roce::rc {
namespace {

struct RcAsking : RcRequester {
    using Asked = std::vector<std::uint32_t>;

    void SetUp() override { begin({}); }

    void begin(const QpCapacity& capacity, std::uint8_t retry_count = 7, bool delayed_acks = true) {
        host = std::make_unique<RcHost>(capacity);
        QpAttributes values = RcHost::usual_attributes();
        values.send_psn = psn;
        values.retry_count = retry_count;
        values.delayed_acks = delayed_acks;
        host->bring_to(QpState::Rts, values);
    }
    void writes(std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; ++i) {
            post(WorkOpcode::RdmaWrite, 4, 0, false);
        }
    }
    // Returns the PSNs, less the first, of the packets that are sent now and ask for an acknowledgement.
    Asked asking() {
        Asked all;
        for (const Datagram& datagram : host->poll_all(now)) {
            const wire::Packet packet = packet_of(datagram);
            if (packet.bth().ack_request) {
                all.push_back((packet.bth().psn.value() - psn.value()) & Psn::kMask);
            }
        }
        return all;
    }
    [[nodiscard]] Duration waits() const { return host->qp->next_deadline() - now; }
    // Begins with a message whose answer measures a round trip.
    void begin_measured(Duration takes) {
        writes(1);
        EXPECT_EQ(asking(), Asked{0});
        now = now + takes;
        acknowledge(0);
    }
};

TEST_F(RcAsking, TheFirstMessageAsksAndThenWhatMakesACompletion) {
    writes(4);
    EXPECT_EQ(asking(), Asked{0});
    writes(2);
    post(WorkOpcode::RdmaWrite, 600, 1, true);
    writes(1);
    EXPECT_EQ(asking(), Asked{8});  // at its end
    acknowledge(8);
    EXPECT_EQ(completions(), (Completions{{1, kGood}}));
}

TEST_F(RcAsking, EachMessageAsksAPeerThatDidNotAgree) {
    begin({}, 7, false);
    writes(4);
    EXPECT_EQ(asking(), (Asked{0, 1, 2, 3}));
    begin({}, 7, false);
    post(WorkOpcode::RdmaWrite, 600, 0, false);
    EXPECT_EQ(asking(), Asked{2});
    EXPECT_EQ(waits(), ack_timeout(14));
}

TEST_F(RcAsking, ReadsAndAtomicsAskAsEver) {
    writes(1);
    post(WorkOpcode::RdmaRead, 4, 1, false);
    post(WorkOpcode::FetchAdd, 8, 2, false);
    EXPECT_EQ(asking(), (Asked{0, 1, 2}));
}

TEST_F(RcAsking, WhatALocalRequestWaitsForAsks) {
    begin_measured(microseconds(9));
    writes(2);
    SendRequest ends;
    ends.opcode = WorkOpcode::LocalInvalidate;
    ends.invalidate = host->key;
    ASSERT_EQ(host->qp->post_send(ends), PostVerdict::Posted);
    EXPECT_EQ(asking(), Asked{2});
}

TEST_F(RcAsking, ABoundWindowAsksForNothing) {
    begin_measured(microseconds(9));
    const Rkey region =
        host->memory.register_region({host->pd, host->span(), RcHost::kBase, kAllRights | Right::BindWindow}).value();
    const Rkey window = host->memory.create_window(host->pd, WindowType::Type2B).value();
    writes(1);
    SendRequest bind;
    bind.opcode = WorkOpcode::BindWindow;
    bind.bind = {window, Lkey{region.value}, RcHost::kBase, 64, kAllRemote, false};
    ASSERT_EQ(host->qp->post_send(bind), PostVerdict::Posted);
    writes(2);
    EXPECT_EQ(asking(), Asked{});
}

TEST_F(RcAsking, HalfOfTheSendQueueAtMostWaitsForThePeersTime) {
    QpCapacity capacity;
    capacity.send_slots = 8;
    begin(capacity);
    writes(8);
    EXPECT_EQ(asking(), (Asked{0, 4}));
    acknowledge(4);
    writes(5);
    EXPECT_EQ(asking(), (Asked{8, 12}));
    capacity.send_slots = 1;
    begin(capacity);
    for (std::uint32_t i = 0; i < 3; ++i) {
        writes(1);
        EXPECT_EQ(asking(), Asked{i});
        acknowledge(i);
    }
}

TEST_F(RcAsking, OneMessageOfManyAsksSoThatRoundTripsAreMeasured) {
    QpCapacity capacity;
    capacity.send_slots = 1024;
    capacity.window_packets = 1024;
    begin(capacity);
    writes(2 * kAskEveryMessages + 1);
    EXPECT_EQ(asking(), (Asked{0, kAskEveryMessages, 2 * kAskEveryMessages}));
}

TEST_F(RcAsking, TheWindowWaitsForNoPeersTime) {
    QpCapacity capacity;
    capacity.window_packets = 8;
    begin(capacity);
    begin_measured(microseconds(9));
    post(WorkOpcode::RdmaWrite, 256 * 20, 0, false);
    EXPECT_EQ(asking(), (Asked{4, 8}));
    acknowledge(4);
    EXPECT_EQ(asking(), Asked{12});
}

TEST_F(RcAsking, ThePeersTimeIsNoSilence) {
    writes(2);
    EXPECT_EQ(asking(), Asked{0});
    EXPECT_EQ(waits(), ack_timeout(14));
    now = now + microseconds(50);
    acknowledge(0);
    EXPECT_EQ(waits(), kRtoMin + kAckDelay);
    post(WorkOpcode::RdmaWrite, 4, 1, true);
    EXPECT_EQ(asking(), Asked{2});
    acknowledge(1);
    EXPECT_EQ(waits(), kRtoMin);
    acknowledge(2);
    EXPECT_EQ(host->qp->next_deadline(), Instant::never());
}

TEST_F(RcAsking, WhatIsSentAgainAsks) {
    begin_measured(microseconds(50));
    writes(3);
    EXPECT_EQ(asking(), Asked{});
    time_out();
    EXPECT_EQ(asking(), (Asked{1, 2, 3}));
    EXPECT_EQ(host->counters.of(RcCounter::EarlyTimeout), 1U);
    EXPECT_EQ(waits(), kRtoMin * 2 + kAckDelay);
}

TEST_F(RcAsking, APutOffAnswerIsNoRoundTrip) {
    begin_measured(microseconds(50));
    for (std::uint32_t at = 1; at < 20; ++at) {
        writes(1);
        EXPECT_EQ(asking(), Asked{});
        now = now + kAckDelay;
        acknowledge(at);
    }
    EXPECT_EQ(host->qp->requester().round_trip().smoothed(), microseconds(50));
    EXPECT_EQ(host->counters.of(RcCounter::EarlyTimeout), 0U);
}

TEST_F(RcAsking, APeerThatNeverAcknowledgesEndsTheConnectionAsEver) {
    begin({}, 1);
    const Instant start = now;
    writes(3);
    (void)asking();
    acknowledge(0);
    while (host->qp->state() == QpState::Rts) {
        time_out();
        (void)asking();
    }
    EXPECT_EQ(completions().front(), (std::pair<std::uint64_t, CompletionStatus>{0, CompletionStatus::RetryExceeded}));
    // Once with the peer's time, once without: the retransmission asked.
    EXPECT_GE(now, start + ack_timeout(14) * 2);
    EXPECT_LE(now, start + (ack_timeout(14) + kAckDelay) * 2);
}

// Returns packets per call between two ends that WRITE with an immediate to each other. One call is under way, and its
// turns have this distance.
double packets_per_call(Duration half, bool delayed_acks) {
    RcHost a;
    RcHost b;
    QpAttributes values = RcHost::usual_attributes();
    values.delayed_acks = delayed_acks;
    values.send_psn = values.receive_psn;
    a.bring_to(QpState::Rts, values);
    b.bring_to(QpState::Rts, values);
    constexpr std::uint32_t kCalls = 2000;
    std::size_t packets = 0;
    Instant now{1'000};
    const auto cross = [&](RcHost& from, RcHost& to) {
        from.qp->on_timeout(now);
        for (const Datagram& datagram : from.poll_all(now)) {
            ++packets;
            to.take(datagram, now);
        }
    };
    const auto call = [&](RcHost& from, RcHost& to) {
        EXPECT_EQ(to.qp->post_receive({0, {}}), PostVerdict::Posted);
        SendRequest request;
        request.opcode = WorkOpcode::RdmaWriteWithImmediate;
        request.signalled = false;
        request.remote_address = RcHost::kBase;
        request.rkey = to.key;
        EXPECT_EQ(from.post(request, RcHost::kBase, 32), PostVerdict::Posted);
        cross(from, to);
        EXPECT_EQ(RcHost::drain(to.receive_completions).size(), 1U);
        now = now + half;
        cross(a, b);
        cross(b, a);
    };
    for (std::uint32_t i = 0; i < kCalls; ++i) {
        call(a, b);
        call(b, a);
    }
    EXPECT_EQ(a.counters.of(RcCounter::EarlyTimeout) + b.counters.of(RcCounter::EarlyTimeout), 0U);
    return static_cast<double>(packets) / kCalls;
}

TEST(RcDelayedAcksLink, ACallIsTwoPacketsAndFewAcknowledgements) {
    EXPECT_EQ(packets_per_call(microseconds(1), false), 4);
    EXPECT_LT(packets_per_call(nanoseconds(500), true), 2.1);
    EXPECT_LT(packets_per_call(microseconds(30), true), 2.2);
    // If messages are slower than the time, each one is acknowledged once.
    EXPECT_LE(packets_per_call(milliseconds(3), true), 4);
}

}  // namespace
}  // namespace cairn::roce::rc
