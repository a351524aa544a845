// The queue pair's states: when it may post and receive, drain, reset, error, shared receives.
#include <gtest/gtest.h>

#include "tests/unit/rc/rc_host.hpp"

namespace cairn::roce::rc {
namespace {

using wire::Operation;

wire::Packet packet_at(Operation operation, Psn psn, Pkey pkey = Pkey{0xffff}) {
    wire::Packet packet(wire::Service::Rc, operation);
    wire::Bth bth;
    bth.psn = psn;
    bth.pkey = pkey;
    bth.ack_request = true;
    packet.set_bth(bth);
    return packet;
}
const Psn kFirstPsn = RcHost::usual_attributes().receive_psn;

TEST(RcQueuePair, PostingAndReceivingNeedTheirStates) {
    struct Case {
        QpState state;
        PostVerdict send, receive;
        bool takes_requests;
    };
    using enum PostVerdict;
    for (const Case& one :
         {Case{QpState::Reset, WrongState, WrongState, false}, Case{QpState::Init, WrongState, Posted, false},
          Case{QpState::Rtr, WrongState, Posted, true}, Case{QpState::Rts, Posted, Posted, true},
          Case{QpState::Sqd, Posted, Posted, true}, Case{QpState::Err, Posted, Posted, false}}) {
        SCOPED_TRACE(static_cast<int>(one.state));
        RcHost host;
        if (one.state != QpState::Reset) {
            host.bring_to(std::min(one.state, QpState::Rts));
        }
        if (one.state == QpState::Sqd || one.state == QpState::Err) {
            ASSERT_EQ(host.qp->modify(one.state, {}, {}), std::nullopt);
        }
        ASSERT_EQ(host.qp->state(), one.state);
        EXPECT_EQ(host.post({}, RcHost::kBase, 4), one.send);
        EXPECT_EQ(host.post_receive(1, RcHost::kBase, 100), one.receive);
        EXPECT_EQ(host.post_receive(2, RcHost::kBase, 100), one.receive);
        host.qp->on_packet(packet_at(Operation::SendOnly, kFirstPsn), {});
        const bool flushed = one.state == QpState::Err;
        EXPECT_EQ(host.receive_completions.size(), flushed ? 2U : one.takes_requests ? 1U : 0U);
        EXPECT_EQ(host.counters.of(RcCounter::WrongState), one.takes_requests ? 0U : 1U);
    }
}

TEST(RcQueuePair, ARefusedChangeChangesNothing) {
    RcHost host;
    QpAttributes values = RcHost::usual_attributes();
    EXPECT_EQ(host.qp->modify(QpState::Rts, kToRts, values), ModifyRefusal::NoTransition);
    EXPECT_EQ(host.qp->modify(QpState::Init, {}, values), ModifyRefusal::Missing);
    host.bring_to(QpState::Init);
    values.path_mtu_bytes = 300;
    EXPECT_EQ(host.qp->modify(QpState::Rtr, kToRtr, values), ModifyRefusal::BadValue);
    EXPECT_EQ(host.qp->state(), QpState::Init);
    EXPECT_EQ(host.qp->attributes().path_mtu_bytes, QpAttributes{}.path_mtu_bytes);
}

TEST(RcQueuePair, OtherPartitionsAndServicesAreDropped) {
    RcHost host;
    host.bring_to(QpState::Rtr);
    host.qp->on_packet(packet_at(Operation::SendOnly, kFirstPsn, Pkey{0xfffe}), {});
    host.qp->on_packet(wire::Packet(wire::Service::Ud, Operation::SendOnly), {});
    host.qp->on_packet(packet_at(Operation::Acknowledge, kFirstPsn), {});  // RTR sends nothing
    EXPECT_EQ(host.counters.of(RcCounter::BadPkey), 1U);
    EXPECT_EQ(host.counters.of(RcCounter::WrongService), 1U);
    EXPECT_EQ(host.counters.of(RcCounter::WrongState), 1U);
    EXPECT_TRUE(host.poll_all().empty());
    host.qp->on_packet(packet_at(Operation::SendOnly, kFirstPsn, Pkey{0x7fff}), {});  // a limited member
    EXPECT_EQ(host.poll_all().size(), 1U);
    EXPECT_EQ(host.qp->poll_event(), QpEvent::CommunicationEstablished);
    EXPECT_FALSE(host.qp->poll_event().has_value());
}

TEST(RcQueuePair, DrainingFinishesWhatIsBegunAndNothingMore) {
    RcHost host;
    host.bring_to(QpState::Rts);
    ASSERT_EQ(host.post({}, RcHost::kBase, 300), PostVerdict::Posted);
    ASSERT_EQ(host.post({}, RcHost::kBase, 300), PostVerdict::Posted);
    ASSERT_TRUE(host.poll().has_value());
    ASSERT_EQ(host.qp->modify(QpState::Sqd, {}, {}), std::nullopt);
    EXPECT_EQ(host.poll_all().size(), 1U);  // the second packet of the first request
    EXPECT_FALSE(host.qp->poll_event().has_value());
    host.qp->on_packet(packet_at(Operation::Acknowledge, Psn{0x101}), {});
    EXPECT_EQ(host.qp->poll_event(), QpEvent::SendQueueDrained);
    EXPECT_FALSE(host.qp->poll_event().has_value());
    EXPECT_TRUE(host.poll_all().empty());
    ASSERT_EQ(host.qp->modify(QpState::Rts, {}, {}), std::nullopt);
    EXPECT_EQ(host.poll_all().size(), 2U);
    host.qp->on_packet(packet_at(Operation::Acknowledge, Psn{0x103}), {});
    EXPECT_EQ(host.send_completions.size(), 2U);
}

// (11.2.5.2: attributes that may change while drained)
TEST(RcQueuePair, DrainedItTakesNewAttributesAndGoesOnWithThem) {
    RcHost host;
    host.bring_to(QpState::Rts);
    ASSERT_EQ(host.qp->modify(QpState::Sqd, {}, {}), std::nullopt);
    QpAttributes values;
    values.ack_timeout = 3;
    values.max_rd_atomic = 1;
    values.path_mtu_bytes = 1024;
    const AttributeSet changed = AttributeSet::of(Attribute::AckTimeout, Attribute::MaxRdAtomic);
    EXPECT_EQ(host.qp->modify(QpState::Sqd, changed.with(AttributeSet::of(Attribute::PathMtu)), values),
              ModifyRefusal::NotAllowed);
    ASSERT_EQ(host.qp->modify(QpState::Sqd, changed, values), std::nullopt);
    ASSERT_EQ(host.qp->modify(QpState::Rts, {}, {}), std::nullopt);
    SendRequest read;
    read.opcode = WorkOpcode::RdmaRead;
    ASSERT_EQ(host.post(read, RcHost::kBase, 4), PostVerdict::Posted);
    ASSERT_EQ(host.post(read, RcHost::kBase, 4), PostVerdict::Posted);
    EXPECT_EQ(host.poll_all().size(), 1U);
    EXPECT_EQ(host.qp->next_deadline(), Instant{} + ack_timeout(3));
}

TEST(RcQueuePair, AQueryTellsTheNumbersThatAreNext) {
    RcHost host;
    host.bring_to(QpState::Rts);
    const QpAttributes before = host.qp->query();
    EXPECT_EQ(before.send_psn, Psn{0x100});
    EXPECT_EQ(before.receive_psn, kFirstPsn);
    ASSERT_EQ(host.post({}, RcHost::kBase, 300), PostVerdict::Posted);
    EXPECT_EQ(host.poll_all().size(), 2U);
    ASSERT_EQ(host.post_receive(1, RcHost::kBase, 100), PostVerdict::Posted);
    host.qp->on_packet(packet_at(Operation::SendOnly, kFirstPsn), {});
    EXPECT_EQ(host.qp->query().send_psn, Psn{0x102});
    EXPECT_EQ(host.qp->query().receive_psn, kFirstPsn.next());
}

TEST(RcQueuePair, ResetLeavesNothingBehindAndBeginsAnew) {
    RcHost host;
    for (int life = 0; life < 3; ++life) {
        host.bring_to(QpState::Rts);
        for (std::uint64_t id = 0; id < 3; ++id) {
            ASSERT_EQ(host.post({id}, RcHost::kBase, 300), PostVerdict::Posted);
            ASSERT_EQ(host.post_receive(id, RcHost::kBase, 300), PostVerdict::Posted);
        }
        const std::vector<Datagram> burst = host.poll_all();
        ASSERT_EQ(burst.size(), 6U);
        EXPECT_EQ(packet_of(burst[0]).bth().psn, Psn{0x100});
        host.qp->on_packet(packet_at(Operation::Acknowledge, Psn{0x101}), {});
        host.qp->on_packet(packet_at(Operation::SendOnly, kFirstPsn), {});
        wire::Packet unfinished = packet_at(Operation::SendFirst, kFirstPsn.next());
        unfinished.set_payload(host.span().first(256));
        host.qp->on_packet(unfinished, {});
        EXPECT_EQ(host.qp->state(), QpState::Rts);
        EXPECT_EQ(host.send_completions.size(), 1U);
        ASSERT_EQ(host.qp->modify(QpState::Reset, {}, {}), std::nullopt);
        EXPECT_EQ(host.send_completions.size(), 0U);
        EXPECT_EQ(host.receive_completions.size(), 0U);
        EXPECT_TRUE(host.poll_all().empty());
        EXPECT_EQ(host.qp->next_deadline(), Instant::never());
        EXPECT_FALSE(host.qp->poll_event().has_value());
    }
}

TEST(RcQueuePair, SharedReceivesAreTakenInTurnAndOutliveAnError) {
    RcHost host;
    ReceiveQueue shared(8, 1);
    QueuePair one(Qpn{1}, host.pd, {},
                  {host.memory, host.send_completions, host.receive_completions, host.counters, &shared});
    QueuePair two(Qpn{2}, host.pd, {},
                  {host.memory, host.send_completions, host.receive_completions, host.counters, &shared});
    const QpAttributes values = RcHost::usual_attributes();
    for (QueuePair* qp : {&one, &two}) {
        ASSERT_EQ(qp->modify(QpState::Init, kToInit, values), std::nullopt);
        ASSERT_EQ(qp->modify(QpState::Rtr, kToRtr, values), std::nullopt);
        EXPECT_EQ(qp->post_receive({}), PostVerdict::WrongState);
    }
    for (std::uint64_t id = 0; id < 3; ++id) {
        ASSERT_EQ(shared.post({id, {}}), PostVerdict::Posted);
    }
    two.on_packet(packet_at(Operation::SendOnly, kFirstPsn), {});
    one.on_packet(packet_at(Operation::SendOnly, kFirstPsn), {});
    const std::vector<Completion> got = RcHost::drain(host.receive_completions);
    ASSERT_EQ(got.size(), 2U);
    EXPECT_EQ(got[0].qpn, Qpn{2});
    EXPECT_EQ(got[0].wr_id, 0U);
    EXPECT_EQ(got[1].qpn, Qpn{1});
    ASSERT_EQ(one.modify(QpState::Err, {}, {}), std::nullopt);
    EXPECT_EQ(one.poll_event(), QpEvent::CommunicationEstablished);
    EXPECT_EQ(one.poll_event(), QpEvent::LastWqeReached);
    EXPECT_EQ(shared.size(), 1U);
}

TEST(RcQueuePair, ItHoldsItsDomain) {
    RcHost host;
    ASSERT_TRUE(host.memory.destroy_region(host.key));
    EXPECT_FALSE(host.memory.destroy_pd(host.pd));
    host.qp.reset();
    EXPECT_TRUE(host.memory.destroy_pd(host.pd));
}

TEST(RcQueuePair, ItsFirstPacketInReadyToReceiveIsToldOfOnce) {
    RcHost host;
    for (int time = 0; time < 2; ++time) {
        host.bring_to(QpState::Rtr);
        wire::Packet write = packet_at(Operation::WriteOnly, kFirstPsn);
        write.set(wire::Reth{RcHost::kBase, host.key, 0});
        host.qp->on_packet(write, {});
        EXPECT_EQ(host.qp->poll_event(), QpEvent::CommunicationEstablished);
        host.qp->on_packet(write, {});
        EXPECT_FALSE(host.qp->poll_event().has_value());
        ASSERT_EQ(host.qp->modify(QpState::Reset, {}, {}), std::nullopt);
    }
}

TEST(RcQueuePair, ThePeersFirstRequestIsToldOfOnceAndNoStrayPacketIs) {
    RcHost host;
    RcHost::CountedEvents told;
    const auto write = [&host](Psn psn) {
        wire::Packet packet = packet_at(Operation::WriteOnly, psn);
        packet.set(wire::Reth{RcHost::kBase, host.key, 0});
        host.qp->on_packet(packet, {});
    };
    host.bring_to(QpState::Rts);
    host.qp->set_first_request_sink(&told);
    write(kFirstPsn.plus(1));
    write(kFirstPsn.plus(Psn::kMask));
    EXPECT_EQ(told.count, 0) << "one comes early, one is old";
    write(kFirstPsn);
    EXPECT_EQ(told.count, 1);
    write(kFirstPsn.plus(1));
    EXPECT_EQ(told.count, 1);
    host.qp->set_first_request_sink(&told);
    ASSERT_EQ(host.qp->modify(QpState::Reset, {}, {}), std::nullopt);
    host.bring_to(QpState::Rts);
    write(kFirstPsn);
    EXPECT_EQ(told.count, 1) << "RESET forgets whom to tell";
}

// These are answers to a peer that the queue pair gave up.
TEST(RcQueuePair, ItAnswersNothingOnceARequestOfItsOwnFailed) {
    RcHost host;
    host.bring_to(QpState::Rts);
    wire::Packet read = packet_at(Operation::ReadRequest, kFirstPsn);
    read.set(wire::Reth{RcHost::kBase, host.key, 256 * 20});
    host.qp->on_packet(read, {});
    SendRequest bad;
    ASSERT_EQ(host.post(bad, RcHost::kBase + RcHost::kBytes - 2, 4), PostVerdict::Posted);
    EXPECT_LE(host.poll_all().size(), 1U);
    EXPECT_EQ(host.qp->state(), QpState::Err);
    EXPECT_FALSE(host.qp->poll_event().has_value());
}

// Requests and answers of one queue pair alternate: neither starves the other.
TEST(RcQueuePair, AnswersAndRequestsTakeTurns) {
    RcHost host;
    host.bring_to(QpState::Rts);
    ASSERT_EQ(host.post({}, RcHost::kBase, 256 * 20), PostVerdict::Posted);
    wire::Packet read = packet_at(Operation::ReadRequest, kFirstPsn);
    read.set(wire::Reth{RcHost::kBase, host.key, 256 * 20});
    host.qp->on_packet(read, {});
    int requests = 0;
    for (int i = 0; i < 20; ++i) {
        const std::optional<Datagram> one = host.poll();
        ASSERT_TRUE(one.has_value());
        requests += packet_of(*one).traits().role == wire::Role::Request ? 1 : 0;
    }
    EXPECT_EQ(requests, 10);
}

}  // namespace
}  // namespace cairn::roce::rc
