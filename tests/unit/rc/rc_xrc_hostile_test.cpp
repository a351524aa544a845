// Extended reliable connections: numbers, keys and packets that do not fit, and misuse by the owner.
#include "tests/unit/rc/rc_xrc.hpp"

namespace cairn::roce::rc {
namespace {

TEST_F(Xrc, ANumberThatTheDomainLacksIsAnInvalidRequestWhateverIsAsked) {
    const Srqn unknown{kFirst.value + 100};
    for (const Srqn srqn : {unknown, host.queues[2].srqn, Srqn{}}) {
        for (const Operation operation :
             {Operation::SendFirst, Operation::SendOnly, Operation::SendOnlyImmediate, Operation::SendOnlyInvalidate,
              Operation::WriteOnly, Operation::WriteOnlyImmediate, Operation::ReadRequest, Operation::CompareSwap}) {
            target = host.make_target();
            bring_up(*target);
            const std::uint64_t refused = host.counters.of(RcCounter::NakFatalSent);
            wire::Packet made = packet(operation, 0, srqn, operation == Operation::SendFirst ? 256 : 0);
            if (made.traits().headers.has<wire::Reth>()) {
                made.set(wire::Reth{XrcHost::kBase, host.queues[2].key, 0});
            }
            EXPECT_EQ(answer(made), wire::Aeth::Syndrome(wire::NakCode::InvalidRequest));
            EXPECT_EQ(target->state(), QpState::Err);
            EXPECT_EQ(target->poll_event(), QpEvent::InvalidRequest);
            EXPECT_EQ(host.counters.of(RcCounter::NakFatalSent), refused + 1);
        }
    }
    EXPECT_TRUE(received(2).empty());
}

TEST_F(Xrc, AKeyOfAnotherProtectionDomainIsAnAccessError) {
    wire::Packet write = packet(Operation::WriteOnly, 0, srqn(0), 8);
    write.set(wire::Reth{XrcHost::kBase, host.queues[1].key, 8});
    EXPECT_EQ(answer(write), wire::Aeth::Syndrome(wire::NakCode::RemoteAccess));
    EXPECT_EQ(target->poll_event(), QpEvent::AccessViolation);
    EXPECT_EQ(*host.at(1), 0);
}

// Each queue's requests lie in its own protection domain: another one's key is no use there either.
TEST_F(Xrc, AReceiveRequestWithAKeyOfAnotherDomainFails) {
    const std::array<Sge, 1> foreign{Sge{XrcHost::kBase, 100, Lkey{host.queues[1].key.value}}};
    ASSERT_EQ(host.queues[0].receives.post({4, foreign}), PostVerdict::Posted);
    EXPECT_EQ(answer(packet(Operation::SendOnly, 0, srqn(0), 8)),
              wire::Aeth::Syndrome(wire::NakCode::RemoteOperational));
    const auto got = received(0);
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(got[0].status, CompletionStatus::LocalProtection);
    EXPECT_EQ(got[0].srqn, srqn(0));
}

TEST_F(Xrc, AMessageKeepsToItsQueue) {
    ASSERT_EQ(host.post_receive(0, 6), PostVerdict::Posted);
    ASSERT_EQ(host.post_receive(1, 7), PostVerdict::Posted);
    target->on_packet(packet(Operation::SendFirst, 0, srqn(0), 256), now);
    EXPECT_EQ(answer(packet(Operation::SendLast, 1, srqn(1), 8)), wire::Aeth::Syndrome(wire::NakCode::InvalidRequest));
    EXPECT_TRUE(received(1).empty());
    const auto got = received(0);
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(got[0].wr_id, 6U);
    EXPECT_EQ(got[0].status, CompletionStatus::Flushed);
    EXPECT_EQ(got[0].srqn, srqn(0));
}

TEST_F(Xrc, AQueueMayEndInTheMiddleOfAMessage) {
    for (const bool by_packet : {true, false}) {
        target = host.make_target();
        bring_up(*target);
        ASSERT_EQ(host.post_receive(0, 6), PostVerdict::Posted);
        EXPECT_FALSE(target->responder().receives_into(srqn(0)));
        target->on_packet(packet(Operation::SendFirst, 0, srqn(0), 256), now);
        EXPECT_TRUE(target->responder().receives_into(srqn(0)));
        EXPECT_FALSE(target->responder().receives_into(srqn(1)));
        host.xrc.remove(srqn(0));
        if (by_packet) {
            EXPECT_EQ(answer(packet(Operation::SendLast, 1, srqn(0), 8)),
                      wire::Aeth::Syndrome(wire::NakCode::InvalidRequest));
        } else {
            ASSERT_EQ(target->modify(QpState::Err, {}, {}), std::nullopt);
        }
        EXPECT_TRUE(received(0).empty());
        XrcHost::Queue& queue = host.queues[0];
        queue.srqn = host.xrc.add(host.domain, {&queue.receives, &queue.completions, queue.pd, {}}).value();
    }
}

TEST_F(Xrc, PacketsOfAnotherServiceOrForTheOtherSideAreDroppedAndCounted) {
    RcHost reliable;
    reliable.bring_to(QpState::Rts, xrc_attributes());
    reliable.take(packet(Operation::SendOnly, 0, srqn(0)));
    EXPECT_EQ(reliable.counters.of(RcCounter::WrongService), 1U);
    EXPECT_FALSE(reliable.poll().has_value());

    wire::Packet of_rc(wire::Service::Rc, Operation::SendOnly);
    of_rc.set_bth(packet(Operation::SendOnly, 0, srqn(0)).bth());
    target->on_packet(of_rc, now);
    EXPECT_EQ(host.counters.of(RcCounter::WrongService), 1U);
    wire::Packet acknowledgement(wire::Service::Xrc, Operation::Acknowledge);
    target->on_packet(acknowledgement, now);
    EXPECT_EQ(host.counters.of(RcCounter::WrongState), 1U);
    OutPacket out;
    EXPECT_EQ(target->poll_transmit({&out, 1}, now), 0U);

    from.take(packet(Operation::SendOnly, 0, srqn(0)));
    EXPECT_EQ(from.counters.of(RcCounter::WrongState), 1U);
    EXPECT_FALSE(from.poll().has_value());
}

TEST_F(Xrc, WhatASideLacksIsRefusedWhenItIsPosted) {
    SendRequest nameless = request(WorkOpcode::Send, 0);
    nameless.remote_srqn = {};
    EXPECT_EQ(from.post(nameless, RcHost::kBase, 8), PostVerdict::BadSrqn);
    EXPECT_EQ(from.post(request(WorkOpcode::AtomicWrite, 0), RcHost::kBase, 8), PostVerdict::BadOpcode);
    EXPECT_EQ(from.post(request(WorkOpcode::Flush, 0), RcHost::kBase, 0), PostVerdict::BadOpcode);
    SendRequest local;
    local.opcode = WorkOpcode::LocalInvalidate;
    EXPECT_EQ(from.qp->post_send(local), PostVerdict::Posted);
    EXPECT_EQ(from.post_receive(1, RcHost::kBase, 8), PostVerdict::WrongSide);
    for (const QpState state : {QpState::Rts, QpState::Err}) {
        if (state == QpState::Err) {
            ASSERT_EQ(target->modify(state, {}, {}), std::nullopt);
        }
        EXPECT_EQ(target->post_send(request(WorkOpcode::Send, 0)), PostVerdict::WrongSide);
        EXPECT_EQ(target->post_receive({}), PostVerdict::WrongSide);
    }
    EXPECT_EQ(host.xrc.nobodys().size(), 0U);
}

}  // namespace
}  // namespace cairn::roce::rc
