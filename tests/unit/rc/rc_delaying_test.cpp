// The responder with delayed acknowledgements, by count or time: when answers come.
#include <gtest/gtest.h>

#include "tests/unit/rc/rc_responder_fixture.hpp"

namespace cairn::roce::rc {
namespace {

struct RcDelaying : RcResponder {
    void SetUp() override { begin(true); }

    void begin(bool delayed_acks) {
        ASSERT_EQ(host.qp->modify(QpState::Reset, {}, {}), std::nullopt);
        QpAttributes values = RcHost::usual_attributes();
        values.delayed_acks = delayed_acks;
        host.bring_to(QpState::Rtr, values);
        next = psn;
        msn = 0;
    }
    void write_one(bool asks, Operation operation = Operation::WriteOnly) {
        wire::Packet packet = write(operation, next, RcHost::kBase, 4, 4);
        wire::Bth bth = packet.bth();
        bth.ack_request = asks;
        packet.set_bth(bth);
        host.take(datagram_of(packet), now);
        next = next.next();
        ++msn;
    }
    void pass(Duration span) {
        now = now + span;
        host.qp->on_timeout(now);
        host.qp->check_invariants();
    }
    void expect_ack_of_all() { expect_ack(next.plus(Psn::kMask), msn); }
    void expect_idle() {
        EXPECT_TRUE(host.poll_all(now).empty());
        EXPECT_EQ(host.qp->next_deadline(), Instant::never());
    }

    Instant now{1'000};
    Psn next{};
    std::uint32_t msn = 0;
};

TEST_F(RcDelaying, WhatDoesNotAskIsAcknowledgedWithinTheTimeFromTheFirstOn) {
    write_one(false);
    pass(kAckDelay / 4);
    write_one(false);
    EXPECT_TRUE(host.poll_all(now).empty());
    EXPECT_EQ(host.qp->next_deadline(), now - kAckDelay / 4 + kAckDelay);
    pass(kAckDelay - kAckDelay / 4 - nanoseconds(1));
    EXPECT_TRUE(host.poll_all(now).empty());
    pass(nanoseconds(1));
    expect_ack_of_all();
    expect_idle();
    write_one(false);
    EXPECT_EQ(host.qp->next_deadline(), now + kAckDelay);
}

TEST_F(RcDelaying, ManyMessagesAreAcknowledgedByTheirNumber) {
    for (int round = 0; round < 3; ++round) {
        for (std::uint32_t i = 1; i < kAckEveryMessages; ++i) {
            write_one(false);
            EXPECT_TRUE(host.poll_all(now).empty());
        }
        write_one(false);
        expect_ack_of_all();
        expect_idle();
    }
}

TEST_F(RcDelaying, WhoAsksIsAnsweredAtOnceForAllBefore) {
    write_one(false);
    write_one(true);
    expect_ack_of_all();
    expect_idle();
}

TEST_F(RcDelaying, AGapAndADuplicateAreAnsweredAtOnce) {
    write_one(false);
    const Psn gap = next;
    next = next.next();
    write_one(false);
    expect_answer(gap, NakCode::PsnSequence, 1);
    expect_idle();
    next = gap;
    msn = 1;
    write_one(false);
    EXPECT_EQ(host.qp->next_deadline(), now + kAckDelay);
    next = gap;
    write_one(false);
    msn = 2;
    expect_ack_of_all();
    expect_idle();
}

TEST_F(RcDelaying, AReadResponseAcknowledgesWhatIsBeforeIt) {
    write_one(false);
    host.take(datagram_of(read(next, RcHost::kBase, 4)), now);
    next = next.next();
    ++msn;
    EXPECT_EQ(answers(), (Answers{{Operation::ReadResponseOnly, next.plus(Psn::kMask).value()}}));
    expect_idle();
    host.take(datagram_of(read(next, RcHost::kBase, 4)), now);
    next = next.next();
    ++msn;
    write_one(false);  // a later one that is still to be acknowledged
    EXPECT_EQ(answers().size(), 1U);
    pass(kAckDelay);
    expect_ack_of_all();
}

TEST_F(RcDelaying, AMessageThatHasNotEndedIsNotAcknowledged) {
    wire::Packet first = write(Operation::WriteFirst, next, RcHost::kBase, 512, 256);
    wire::Bth bth = first.bth();
    bth.ack_request = false;
    first.set_bth(bth);
    host.take(datagram_of(first), now);
    expect_idle();
}

TEST_F(RcDelaying, AReceiverThatIsNotReadyEndsTheTime) {
    write_one(false);
    host.take(datagram_of(make(Operation::SendOnly, next, 4, false)), now);
    expect_answer(next, wire::RnrTimer{12}, 1);
    expect_idle();
}

TEST_F(RcDelaying, ThatTheQueuePairStopsEndsTheTime) {
    for (const QpState state : {QpState::Err, QpState::Reset}) {
        begin(true);
        write_one(false);
        EXPECT_EQ(host.qp->next_deadline(), now + kAckDelay);
        ASSERT_EQ(host.qp->modify(state, {}, {}), std::nullopt);
        expect_idle();
        pass(kAckDelay);
        expect_idle();
    }
}

TEST_F(RcDelaying, APeerThatIsNotAskedAndDidNotAgreeWaitsForTheNumber) {
    begin(false);
    write_one(false);
    expect_idle();
    for (std::uint32_t i = 1; i < kAckEveryMessages; ++i) {
        write_one(false);
    }
    expect_ack_of_all();
}

}  // namespace
}  // namespace cairn::roce::rc
