// Queue pairs of unreliable datagrams: how datagrams arrive, states, refused and dropped ones.
#include "tests/unit/verbs/datagram_pair.hpp"

namespace cairn::verbs {
namespace {

TEST_F(Datagrams, AMessageArrivesBehindItsIpHeaderWithAllThatIsSaidOfIt) {
    std::memcpy(a.memory().data() + 32768, "cairn", 5);
    ASSERT_EQ(receive(there), PostVerdict::Posted);
    DatagramRequest made = request(5);
    made.work.wr_id = 9;
    made.work.opcode = WorkOpcode::SendWithImmediate;
    made.work.immediate = 0x12345678;
    made.work.solicited = true;
    ASSERT_EQ(here.qp->post_send(made), PostVerdict::Posted);
    run();
    const std::vector<Completion> sent = drain(*a.sends);
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].wr_id, 9U);
    EXPECT_EQ(sent[0].qpn, here.qp->qpn());
    const std::vector<Completion> received = drain(*b.receives);
    ASSERT_EQ(received.size(), 1U);
    EXPECT_EQ(received[0].bytes, kGrhBytes + 5U);
    EXPECT_EQ(received[0].source_qpn, here.qp->qpn());
    EXPECT_TRUE(received[0].has_grh && received[0].has_immediate && received[0].solicited);
    EXPECT_EQ(received[0].immediate, 0x12345678U);
    const auto at = place(there, 0);
    EXPECT_EQ(std::memcmp(at.data() + kGrhBytes, "cairn", 5), 0);
    EXPECT_EQ(std::count(at.begin(), at.begin() + 20, 0), 20);
    constexpr std::array<std::uint8_t, 4> kFront{0x45, 0, 0, 20 + 8 + 20 + 4 + 5 + 3 + 4};
    EXPECT_EQ(std::memcmp(at.data() + 20, kFront.data(), kFront.size()), 0);
    EXPECT_EQ(source_of(at).text(), "10.0.0.1");
    EXPECT_EQ(at[39], 2);  // to 10.0.0.2
}

TEST_F(Datagrams, AnIpv6HeaderFillsTheWholeArea) {
    VerbsHost c("fd00::1", 7);
    VerbsHost d("fd00::2", 8);
    c.port.join(d.port);
    End from = make(c);
    End to = make(d);
    ASSERT_EQ(receive(to), PostVerdict::Posted);
    const auto ah = c.device.create_ah(net::IpAddress::parse("fd00::2").value(), 0xc000, now).value();
    const std::array<Sge, 1> none{};
    DatagramRequest made;
    made.work.sges = std::span(none).first(0);
    made.to = ah.get();
    made.qpn = to.qp->qpn();
    made.qkey = kKey;
    ASSERT_EQ(from.qp->post_send(made), PostVerdict::Posted);
    c.turn(now);
    d.turn(now);
    EXPECT_EQ(drain(*d.receives).at(0).bytes, std::uint32_t{kGrhBytes});
    EXPECT_EQ(source_of(place(to, 0)).text(), "fd00::1");
    EXPECT_TRUE(source_of(place(to, 0).first(39)).is_unspecified());
}

TEST_F(Datagrams, InlineBytesAndUnsignalledRequestsAreAsWithConnections) {
    ASSERT_EQ(receive(there), PostVerdict::Posted);
    std::array<std::uint8_t, 3> bytes{7, 8, 9};
    DatagramRequest made = request(0);
    made.work.is_inline = true;
    made.work.inline_bytes = bytes;
    made.work.signalled = false;
    ASSERT_EQ(here.qp->post_send(made), PostVerdict::Posted);
    bytes = {};
    run();
    EXPECT_TRUE(drain(*a.sends).empty());
    ASSERT_EQ(drain(*b.receives).size(), 1U);
    EXPECT_EQ(place(there, 0)[kGrhBytes + 1], 8);
}

TEST_F(Datagrams, WhatIsNotForItIsCountedAndTakesNoReceiveRequest) {
    EXPECT_EQ(send(8), PostVerdict::Posted);
    run();
    EXPECT_EQ(drops(b, roce::Drop::NoReceive), 1U);
    ASSERT_EQ(receive(there, kGrhBytes + 8), PostVerdict::Posted);
    EXPECT_EQ(send(9), PostVerdict::Posted);
    DatagramRequest stranger = request(8);
    stranger.qkey = Qkey{kKey.value + 1};
    EXPECT_EQ(here.qp->post_send(stranger), PostVerdict::Posted);
    run();
    EXPECT_EQ(drops(b, roce::Drop::ReceiveTooShort), 1U);
    EXPECT_EQ(drops(b, roce::Drop::BadQkey), 1U);
    EXPECT_TRUE(drain(*b.receives).empty());
    EXPECT_EQ(send(8), PostVerdict::Posted);
    run();
    EXPECT_EQ(drain(*b.receives).size(), 1U);
    EXPECT_EQ(there.qp->state(), QpState::Rts);
}

TEST_F(Datagrams, AControlledQkeyIsTheQueuePairsOwn) {
    ASSERT_EQ(receive(there), PostVerdict::Posted);
    DatagramRequest made = request(8);
    made.qkey = Qkey{0x80000000};
    ASSERT_EQ(here.qp->post_send(made), PostVerdict::Posted);
    run();
    EXPECT_EQ(drain(*b.receives).size(), 1U);
}

TEST_F(Datagrams, WhatDatagramsCanNotDoIsRefused) {
    const std::uint32_t most = here.qp->most_bytes();
    EXPECT_EQ(most, 4096U);
    EXPECT_EQ(send(most + 1), PostVerdict::TooLong);
    EXPECT_EQ(send(most), PostVerdict::Posted);
    DatagramRequest write = request(8);
    write.work.opcode = WorkOpcode::RdmaWrite;
    EXPECT_EQ(here.qp->post_send(write), PostVerdict::BadOpcode);
    EXPECT_FALSE(a.device.create_datagram_qp(*a.pd, {0, 1, 1, 0}, {*a.sends, *a.receives}).ok());
    EXPECT_FALSE(destroy(a.sends).ok());
    EXPECT_FALSE(destroy(a.pd).ok());
}

TEST_F(Datagrams, EachStateSendsAndReceivesWhatItMay) {
    const AttributeSet first = AttributeSet::of(Attribute::Qkey, Attribute::Pkey);
    QpAttributes values;
    values.qkey = kKey;
    UdQp& qp = *there.qp;
    EXPECT_EQ(qp.modify(QpState::Reset), std::nullopt);
    EXPECT_EQ(receive(there), PostVerdict::WrongState);
    EXPECT_EQ(qp.modify(QpState::Init), ModifyRefusal::Missing);
    EXPECT_EQ(qp.modify(QpState::Init, first.with(AttributeSet::of(Attribute::DestQpn)), values),
              ModifyRefusal::NotAllowed);
    EXPECT_EQ(qp.modify(QpState::Init, first, values), std::nullopt);
    EXPECT_EQ(receive(there), PostVerdict::Posted);
    EXPECT_EQ(send(8), PostVerdict::Posted);
    run();
    EXPECT_EQ(drops(b, roce::Drop::WrongState), 1U);
    EXPECT_EQ(qp.modify(QpState::Rtr), std::nullopt);
    EXPECT_EQ(send(8), PostVerdict::Posted);
    run();
    EXPECT_EQ(drain(*b.receives).size(), 1U);

    (void)drain(*a.sends);
    EXPECT_EQ(here.qp->modify(QpState::Sqd), std::nullopt);
    EXPECT_EQ(here.qp->poll_event(), QpEvent::SendQueueDrained);
    EXPECT_EQ(send(8), PostVerdict::Posted);
    run();
    EXPECT_TRUE(drain(*a.sends).empty());
    EXPECT_EQ(here.qp->modify(QpState::Rts), std::nullopt);
    run();
    EXPECT_EQ(drain(*a.sends).size(), 1U);
}

TEST_F(Datagrams, AFailedRequestStopsSendingUntilItIsMended) {
    DatagramRequest bad = request(8);
    const std::array<Sge, 1> nowhere{Sge{a.mr->address(), 8, Lkey{1}}};
    bad.work.sges = nowhere;
    bad.work.signalled = false;
    ASSERT_EQ(here.qp->post_send(bad), PostVerdict::Posted);
    ASSERT_EQ(send(8), PostVerdict::Posted);
    run();
    const std::vector<Completion> ended = drain(*a.sends);
    ASSERT_EQ(ended.size(), 2U);
    EXPECT_EQ(ended[0].status, CompletionStatus::LocalProtection);
    EXPECT_EQ(ended[1].status, CompletionStatus::Flushed);
    EXPECT_EQ(here.qp->state(), QpState::Sqe);
    ASSERT_EQ(send(8), PostVerdict::Posted);
    EXPECT_EQ(drain(*a.sends).at(0).status, CompletionStatus::Flushed);
    EXPECT_EQ(here.qp->modify(QpState::Rts), std::nullopt);
    ASSERT_EQ(send(8), PostVerdict::Posted);
    run();
    EXPECT_EQ(drain(*a.sends).at(0).status, CompletionStatus::Success);
}

TEST_F(Datagrams, InErrorAllIsFlushedAndAfterResetNothingIsLeft) {
    ASSERT_EQ(receive(here), PostVerdict::Posted);
    ASSERT_EQ(send(8), PostVerdict::Posted);
    EXPECT_EQ(here.qp->modify(QpState::Err), std::nullopt);
    EXPECT_EQ(drain(*a.sends).at(0).status, CompletionStatus::Flushed);
    EXPECT_EQ(drain(*a.receives).at(0).status, CompletionStatus::Flushed);
    ASSERT_EQ(receive(here), PostVerdict::Posted);
    EXPECT_EQ(here.qp->modify(QpState::Reset), std::nullopt);
    EXPECT_TRUE(drain(*a.receives).empty());
    EXPECT_EQ(here.qp->bring_up(kKey), std::nullopt);
    ASSERT_EQ(send(8), PostVerdict::Posted);
    EXPECT_EQ(here.qp->modify(QpState::Reset), std::nullopt);
    run();
    EXPECT_TRUE(drain(*a.sends).empty());
}

TEST_F(Datagrams, AReceiveRequestOfForeignMemoryEndsTheQueuePair) {
    const std::array<Sge, 1> nowhere{Sge{b.mr->address(), kPlace, Lkey{1}}};
    ASSERT_EQ(there.qp->post_receive({1, nowhere}), PostVerdict::Posted);
    ASSERT_EQ(receive(there), PostVerdict::Posted);
    ASSERT_EQ(send(8), PostVerdict::Posted);
    run();
    const std::vector<Completion> ended = drain(*b.receives);
    ASSERT_EQ(ended.size(), 2U);
    EXPECT_EQ(ended[0].status, CompletionStatus::LocalProtection);
    EXPECT_EQ(ended[1].status, CompletionStatus::Flushed);
    EXPECT_EQ(there.qp->state(), QpState::Err);
    EXPECT_FALSE(there.qp->poll_event().has_value());
}

TEST_F(Datagrams, AnOverrunCompletionQueueEndsTheQueuePair) {
    auto cq = a.device.create_cq(2).value();
    auto qp = a.device.create_datagram_qp(*a.pd, {}, {*cq, *a.receives}).value();
    ASSERT_EQ(qp->bring_up(kKey), std::nullopt);
    for (int i = 0; i < 4; ++i) {
        ASSERT_EQ(qp->post_send(request(8)), PostVerdict::Posted);
    }
    run();
    EXPECT_TRUE(cq->overrun());
    EXPECT_EQ(qp->state(), QpState::Err);
    EXPECT_EQ(qp->poll_event(), QpEvent::CqOverrun);
}

TEST_F(Datagrams, ASharedReceiveQueueFeedsThemToo) {
    auto srq = b.device.create_srq(8, 1).value();
    End one = make(b, srq.get());
    End other = make(b, srq.get());
    const std::array<Sge, 1> places{b.mr->sge(0, kPlace)};
    const std::array<ReceiveRequest, 2> two{{{1, places}, {2, places}}};
    EXPECT_EQ(srq->post(two).posted, 2U);
    srq->set_limit(1);
    for (End* const end : {&one, &other}) {
        DatagramRequest made = request(8);
        made.qpn = end->qp->qpn();
        ASSERT_EQ(here.qp->post_send(made), PostVerdict::Posted);
    }
    run();
    const std::vector<Completion> received = drain(*b.receives);
    ASSERT_EQ(received.size(), 2U);
    EXPECT_EQ(received[0].qpn, one.qp->qpn());
    EXPECT_EQ(received[1].qpn, other.qp->qpn());
    EXPECT_TRUE(srq->take_limit_event());
    EXPECT_EQ(one.qp->modify(QpState::Err), std::nullopt);
    EXPECT_EQ(one.qp->poll_event(), QpEvent::LastWqeReached);
}

}  // namespace
}  // namespace cairn::verbs
