// Extended reliable connections between two devices: made by address and port, used, misused, ended.
#include "lib/verbs/xrc.hpp"

#include <array>
#include <cstring>

#include "tests/unit/verbs/verbs_pair.hpp"

namespace cairn::verbs {
namespace {

// a has an initiator; b a domain with two receive queues, the second with a protection domain of its own, and a target.
struct VerbsXrc : VerbsPair {
    static constexpr std::uint32_t kRoom = 4096;

    static QpCapacity initiating() {
        QpCapacity capacity;
        capacity.service = Service::Xrc;
        return capacity;
    }

    void SetUp() override {
        ASSERT_TRUE(b.connector->listen(kPort, 8).ok());
        connect();
    }
    void TearDown() override {
        a.connector.reset();
        b.connector.reset();
    }
    void connect() {
        const Result<ConnectionId> asked = a.connector->connect(*initiator, to_b(), now);
        ASSERT_TRUE(asked.ok());
        run();
        const auto requested = b.expect_event<cm::Requested>();
        EXPECT_EQ(requested.qp.transport, wire::TransportService::Extended);
        ASSERT_TRUE(b.connector->accept(requested.id, *target, choice(), now).ok());
        run();
        (void)a.expect_event<cm::Established>();
        (void)b.expect_event<cm::Established>();
    }
    SendRequest request(WorkOpcode opcode, const XrcSrq& srq, std::span<const Sge> sges) {
        SendRequest made;
        made.wr_id = 1;
        made.opcode = opcode;
        made.sges = sges;
        made.remote_srqn = srq.srqn();
        const Mr& memory = &srq == second.get() ? *second_mr : *b.mr;
        made.remote_address = memory.address();
        made.rkey = memory.rkey();
        made.immediate = 77;
        return made;
    }
    // Performs a request to this receive queue. Returns how it ended.
    CompletionStatus perform(WorkOpcode opcode, const XrcSrq& srq, std::uint32_t bytes) {
        const std::array<Sge, 1> sges{a.mr->sge(0, bytes)};
        EXPECT_EQ(initiator->post_send(request(opcode, srq, sges)), PostVerdict::Posted);
        run();
        const auto done = drain(*a.sends);
        EXPECT_EQ(done.size(), 1U);
        return done.empty() ? CompletionStatus::LocalQpOperation : done[0].status;
    }
    void post_receive(XrcSrq& srq, std::uint64_t wr_id) {
        const Mr& memory = &srq == second.get() ? *second_mr : *b.mr;
        const std::array<Sge, 1> sges{memory.sge(kRoom, kRoom)};
        const std::array<ReceiveRequest, 1> one{ReceiveRequest{wr_id, sges}};
        EXPECT_EQ(srq.post(one).posted, 1U);
    }

    std::vector<std::uint64_t> more = std::vector<std::uint64_t>(VerbsHost::kBytes / 8);
    std::unique_ptr<Xrcd> domain = b.device.create_xrcd();
    std::unique_ptr<Pd> second_pd = b.device.create_pd();
    std::unique_ptr<Mr> second_mr =
        b.device
            .register_memory(*second_pd, {reinterpret_cast<std::uint8_t*>(more.data()), VerbsHost::kBytes}, kAllRights)
            .value();
    std::unique_ptr<Cq> second_cq = b.device.create_cq(16).value();
    std::unique_ptr<XrcSrq> first = b.device.create_xrc_srq(*b.pd, *domain, *b.receives, 8, 1).value();
    std::unique_ptr<XrcSrq> second = b.device.create_xrc_srq(*second_pd, *domain, *second_cq, 8, 1).value();
    std::unique_ptr<Qp> target = b.device.create_xrc_target(*domain).value();
    std::unique_ptr<Qp> initiator = a.device.create_qp(*a.pd, initiating(), {*a.sends, *a.sends}).value();
};

TEST_F(VerbsXrc, AConnectionGivesEachSideWhatItNeeds) {
    EXPECT_EQ(initiator->state(), QpState::Rts);
    EXPECT_EQ(target->state(), QpState::Rts);
    EXPECT_EQ(initiator->attributes().dest_qpn, target->qpn());
    EXPECT_EQ(target->attributes().dest_qpn, initiator->qpn());
    EXPECT_EQ(initiator->attributes().send_psn, target->attributes().receive_psn);
    EXPECT_EQ(initiator->attributes().max_rd_atomic, 16U);
    EXPECT_EQ(target->attributes().max_dest_rd_atomic, 16U);
    EXPECT_TRUE(initiator->attributes().selective && target->attributes().selective);
    EXPECT_NE(first->srqn(), second->srqn());
}

TEST_F(VerbsXrc, MessagesOfOneConnectionReachEitherQueue) {
    std::memset(a.memory().data(), 0x42, 10'000);
    for (XrcSrq* const srq : {second.get(), first.get()}) {
        post_receive(*srq, 5);
        EXPECT_EQ(perform(WorkOpcode::SendWithImmediate, *srq, kRoom), CompletionStatus::Success);
        const auto got = drain(srq == first.get() ? *b.receives : *second_cq);
        ASSERT_EQ(got.size(), 1U);
        EXPECT_EQ(got[0].wr_id, 5U);
        EXPECT_EQ(got[0].immediate, 77U);
        EXPECT_EQ(got[0].bytes, kRoom);
        EXPECT_EQ(got[0].qpn, target->qpn());
        EXPECT_EQ(got[0].srqn, srq->srqn());
        const Mr& memory = srq == first.get() ? *b.mr : *second_mr;
        EXPECT_EQ(memory.bytes()[2 * kRoom - 1], 0x42);
    }
    EXPECT_EQ(b.receives->poll({}), 0U);
}

TEST_F(VerbsXrc, WritesReadsAndAtomicsGoWhereTheirQueueMay) {
    std::memset(a.memory().data(), 0x17, 20'000);
    EXPECT_EQ(perform(WorkOpcode::RdmaWrite, *second, 20'000), CompletionStatus::Success);
    EXPECT_EQ(second_mr->bytes()[19'999], 0x17);
    EXPECT_EQ(b.mr->bytes()[0], 0);
    std::memset(b.memory().data(), 0x23, 20'000);
    EXPECT_EQ(perform(WorkOpcode::RdmaRead, *first, 20'000), CompletionStatus::Success);
    EXPECT_EQ(a.memory()[19'999], 0x23);
    EXPECT_EQ(perform(WorkOpcode::FetchAdd, *first, 8), CompletionStatus::Success);
}

TEST_F(VerbsXrc, AMemoryKeyIsGoodWithItsOwnQueueOnly) {
    const std::array<Sge, 1> sges{a.mr->sge(0, 8)};
    SendRequest crossed = request(WorkOpcode::RdmaWrite, *first, sges);
    crossed.rkey = second_mr->rkey();
    crossed.remote_address = second_mr->address();
    ASSERT_EQ(initiator->post_send(crossed), PostVerdict::Posted);
    run();
    EXPECT_EQ(drain(*a.sends).at(0).status, CompletionStatus::RemoteAccess);
    const std::optional<AsyncEvent> event = b.device.async_events().poll();
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->kind, AsyncKind::QpAccessError);
    EXPECT_EQ(event->source<Qp>(), target.get());
}

TEST_F(VerbsXrc, AQueueThatEndedIsUnknownToPeers) {
    const std::array<Sge, 1> sges{a.mr->sge(0, 8)};
    const SendRequest late = request(WorkOpcode::Send, *second, sges);
    EXPECT_TRUE(destroy(second).ok());
    ASSERT_EQ(initiator->post_send(late), PostVerdict::Posted);
    run();
    EXPECT_EQ(drain(*a.sends).at(0).status, CompletionStatus::RemoteInvalidRequest);
    EXPECT_EQ(target->state(), QpState::Err);
}

TEST_F(VerbsXrc, WhatIsInUseCanNotBeDestroyed) {
    EXPECT_FALSE(destroy(domain).ok());
    EXPECT_FALSE(destroy(second_cq).ok());
    EXPECT_FALSE(destroy(second_pd).ok());
    post_receive(*second, 1);
    // Half a message is there: the packets after its first are lost.
    b.port.fate = a.port.fate = [sent = 0](std::uint64_t) mutable { return sent++ == 0 ? 1 : 0; };
    const std::array<Sge, 1> sges{a.mr->sge(0, 10'000)};
    ASSERT_EQ(initiator->post_send(request(WorkOpcode::Send, *second, sges)), PostVerdict::Posted);
    run();
    EXPECT_FALSE(destroy(second).ok());
    EXPECT_TRUE(destroy(first).ok());
    EXPECT_EQ(target->modify(QpState::Err), std::nullopt);
    const auto flushed = drain(*second_cq);
    ASSERT_EQ(flushed.size(), 1U);
    EXPECT_EQ(flushed[0].status, CompletionStatus::Flushed);
    EXPECT_TRUE(destroy(second).ok());
    EXPECT_TRUE(destroy(second_cq).ok());
    EXPECT_FALSE(destroy(domain).ok());
    b.connector.reset();
    EXPECT_TRUE(destroy(target).ok());
    EXPECT_TRUE(destroy(domain).ok());
}

TEST_F(VerbsXrc, AQueueThatRunsShortMakesAnEvent) {
    post_receive(*second, 1);
    second->set_limit(1);
    EXPECT_EQ(perform(WorkOpcode::Send, *second, 8), CompletionStatus::Success);
    const std::optional<AsyncEvent> event = b.device.async_events().poll();
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->kind, AsyncKind::SrqLimitReached);
    EXPECT_EQ(event->source<Srq>(), second.get());
}

TEST_F(VerbsXrc, EachSideRefusesTheOthersWork) {
    SendRequest nameless;
    EXPECT_EQ(initiator->post_send(nameless), PostVerdict::BadSrqn);
    EXPECT_EQ(initiator->post_receive(ReceiveRequest{}), PostVerdict::WrongSide);
    EXPECT_EQ(target->post_receive(ReceiveRequest{}), PostVerdict::WrongSide);
    EXPECT_EQ(target->post_send(nameless), PostVerdict::WrongSide);
    const auto other_target = b.device.create_xrc_target(*domain).value();
    EXPECT_FALSE(b.connector->connect(*other_target, to_b(), now).ok());
    const auto other = a.device.create_qp(*a.pd, initiating(), {*a.sends, *a.sends}).value();
    ASSERT_TRUE(a.connector->connect(*other, to_b(), now).ok());
    run();
    const auto requested = b.expect_event<cm::Requested>();
    const auto answering = b.device.create_qp(*b.pd, initiating(), {*b.sends, *b.sends}).value();
    EXPECT_FALSE(b.connector->accept(requested.id, *answering, choice(), now).ok());
    b.qps.push_back(b.make_qp());
    EXPECT_FALSE(b.connector->accept(requested.id, *b.qps[0], choice(), now).ok());
    EXPECT_TRUE(b.connector->reject(requested.id, {}, now).ok());
    run();
    a.connector.reset();
}

TEST_F(VerbsXrc, ReceiveQueuesOfXrcAreForTargetsOnly) {
    const QpQueues queues{*b.sends, *b.receives, first.get()};
    EXPECT_FALSE(b.device.create_qp(*b.pd, {}, queues).ok());
    EXPECT_FALSE(b.device.create_qp(*b.pd, initiating(), queues).ok());
    EXPECT_FALSE(b.device.create_datagram_qp(*b.pd, {}, queues).ok());
    const auto ordinary = b.device.create_srq(8, 1).value();
    EXPECT_FALSE(b.device.create_qp(*b.pd, initiating(), {*b.sends, *b.receives, ordinary.get()}).ok());
    EXPECT_FALSE(b.device.create_xrc_srq(*b.pd, *domain, *b.receives, 0, 1).ok());
}

}  // namespace
}  // namespace cairn::verbs
