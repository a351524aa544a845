// The requester as packet traces at exact virtual times: work requests in, packets out, answers in, completions out.
#include <gtest/gtest.h>

#include "tests/unit/rc/rc_requester_fixture.hpp"

namespace cairn::roce::rc {
namespace {

TEST_F(RcRequester, OneAcknowledgementCompletesAllBeforeItSignalledOrNot) {
    post(WorkOpcode::Send, 600, 1);
    post(WorkOpcode::RdmaWrite, 10, 2, false);
    post(WorkOpcode::RdmaWrite, 10, 3);
    post(WorkOpcode::RdmaWrite, 10, 4);
    EXPECT_EQ(sent().size(), 6U);
    acknowledge(1);
    EXPECT_TRUE(completions().empty());
    acknowledge(4);
    EXPECT_EQ(completions(), (Completions{{1, kGood}, {3, kGood}}));
    acknowledge(4);  // again
    acknowledge(2);  // older
    EXPECT_TRUE(completions().empty());
    acknowledge(9);  // never sent
    EXPECT_TRUE(completions().empty());
    EXPECT_EQ(host->counters.of(RcCounter::StaleResponse), 2U);
    EXPECT_EQ(host->counters.of(RcCounter::UnsentResponse), 1U);
    acknowledge(5);
    EXPECT_EQ(completions(), (Completions{{4, kGood}}));
    EXPECT_EQ(host->qp->next_deadline(), Instant::never());
}

TEST_F(RcRequester, ANakGoesBackOnceWhateverComesDouble) {
    post(WorkOpcode::Send, 1000, 1);
    EXPECT_EQ(sent().size(), 4U);
    answer(1, NakCode::PsnSequence);
    answer(1, NakCode::PsnSequence);
    const Packets rest{{Operation::SendMiddle, 1}, {Operation::SendMiddle, 2}, {Operation::SendLast, 3}};
    EXPECT_EQ(sent(), rest);
    answer(1, NakCode::PsnSequence);
    EXPECT_TRUE(sent().empty());
    acknowledge(3);
    EXPECT_EQ(completions(), (Completions{{1, kGood}}));
}

TEST_F(RcRequester, ALateAcknowledgementMovesWhatIsToBeSentAgain) {
    post(WorkOpcode::Send, 1000, 1);
    EXPECT_EQ(sent().size(), 4U);
    answer(0, NakCode::PsnSequence);
    EXPECT_EQ(host->poll_all(now).size(), 4U);
    time_out();
    acknowledge(2);
    EXPECT_EQ(sent(), (Packets{{Operation::SendLast, 3}}));
    time_out();
    acknowledge(3);
    EXPECT_TRUE(sent().empty());
    EXPECT_EQ(completions(), (Completions{{1, kGood}}));
}

TEST_F(RcRequester, SilenceIsTriedSevenTimesThenEnds) {
    start({}, 7);
    post(WorkOpcode::RdmaWrite, 4, 1);
    post(WorkOpcode::RdmaWrite, 4, 2, false);
    EXPECT_EQ(sent().size(), 2U);
    for (int i = 0; i < 7; ++i) {
        const Instant before = now;
        EXPECT_EQ(host->qp->next_deadline(), before + ack_timeout(14));
        host->qp->on_timeout(now + ack_timeout(14) - nanoseconds(1));
        EXPECT_TRUE(sent().empty());
        time_out();
        EXPECT_EQ(sent().size(), 2U);
        EXPECT_TRUE(completions().empty());
    }
    time_out();
    EXPECT_EQ(completions(), (Completions{{1, CompletionStatus::RetryExceeded}, {2, kFlushed}}));
    EXPECT_EQ(host->qp->state(), QpState::Err);
    EXPECT_FALSE(host->qp->poll_event().has_value());  // a completion reported it
    EXPECT_EQ(host->qp->next_deadline(), Instant::never());
}

TEST_F(RcRequester, ProgressGivesAllRetriesBack) {
    start({}, 1);
    post(WorkOpcode::RdmaWrite, 600, 1);
    EXPECT_EQ(sent().size(), 3U);
    for (std::uint32_t i = 0; i < 3; ++i) {
        time_out();
        EXPECT_EQ(sent().size(), 3U - i);
        acknowledge(i);
    }
    EXPECT_EQ(completions(), (Completions{{1, kGood}}));
}

TEST_F(RcRequester, ATimeoutBeforeAnythingCouldBeSentAgainCostsNoRetry) {
    start({}, 1);
    post(WorkOpcode::RdmaWrite, 4, 1);
    EXPECT_EQ(sent().size(), 1U);
    for (int i = 0; i < 5; ++i) {
        time_out();
    }
    EXPECT_EQ(host->qp->state(), QpState::Rts);
    EXPECT_EQ(sent().size(), 1U);
    time_out();
    EXPECT_EQ(host->qp->state(), QpState::Err);
}

TEST_F(RcRequester, ThePeersNotBeingReadyIsWaitedForExactly) {
    start({}, 7, 2);
    post(WorkOpcode::Send, 4, 1);
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(sent(), (Packets{{Operation::SendOnly, 0}}));
        answer(0, wire::RnrTimer{14});
        answer(0, wire::RnrTimer{14});  // doubled
        EXPECT_EQ(host->qp->next_deadline(), now + microseconds(1280));
        now = now + microseconds(1280) - nanoseconds(1);
        host->qp->on_timeout(now);
        EXPECT_TRUE(sent().empty());
        now = now + nanoseconds(1);
    }
    EXPECT_EQ(sent(), (Packets{{Operation::SendOnly, 0}}));
    answer(0, wire::RnrTimer{14});
    EXPECT_EQ(completions(), (Completions{{1, CompletionStatus::RnrRetryExceeded}}));
    EXPECT_EQ(host->qp->state(), QpState::Err);
}

TEST_F(RcRequester, SevenRnrRetriesAreForEver) {
    post(WorkOpcode::Send, 4, 1);
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(sent().size(), 1U);
        answer(0, wire::RnrTimer{1});
        time_out();
    }
    EXPECT_EQ(sent().size(), 1U);
    acknowledge(0);
    EXPECT_EQ(completions(), (Completions{{1, kGood}}));
}

TEST_F(RcRequester, EachRefusalHasItsStatusAndFlushesTheRestInOrder) {
    const std::vector<std::pair<NakCode, CompletionStatus>> codes{
        {NakCode::InvalidRequest, CompletionStatus::RemoteInvalidRequest},
        {NakCode::RemoteAccess, CompletionStatus::RemoteAccess},
        {NakCode::RemoteOperational, CompletionStatus::RemoteOperation}};
    for (const auto& [code, status] : codes) {
        start({});
        for (std::uint64_t id = 1; id <= 4; ++id) {
            post(WorkOpcode::RdmaWrite, 4, id, false);
        }
        EXPECT_EQ(sent().size(), 4U);
        answer(1, code);
        EXPECT_EQ(completions(), (Completions{{2, status}, {3, kFlushed}, {4, kFlushed}}));
        post(WorkOpcode::Send, 4, 9, false);
        EXPECT_EQ(completions(), (Completions{{9, kFlushed}}));
        EXPECT_TRUE(sent().empty());
    }
}

TEST_F(RcRequester, TheWindowHoldsAndAsksForAcknowledgementsInTime) {
    QpCapacity capacity;
    capacity.window_packets = 4;
    start(capacity);
    post(WorkOpcode::RdmaWrite, 256 * 20, 1);
    std::uint32_t next = 0;
    while (next < 20) {
        const std::vector<Datagram> burst = host->poll_all(now);
        ASSERT_FALSE(burst.empty());
        ASSERT_LE(burst.size(), 4U);
        std::optional<std::uint32_t> asked;
        for (const Datagram& datagram : burst) {
            asked = packet_of(datagram).bth().ack_request ? next : asked;
            ++next;
        }
        ASSERT_TRUE(asked.has_value());
        acknowledge(*asked);
    }
    EXPECT_EQ(completions(), (Completions{{1, kGood}}));
}

TEST_F(RcRequester, EqualWritesLeaveAsMessagesOfOnePacketThatCompleteAsOne) {
    host = std::make_unique<RcHost>(QpCapacity{}, 16, true);
    QpAttributes values = RcHost::usual_attributes();
    values.send_psn = psn;
    host->bring_to(QpState::Rts, values);
    post(WorkOpcode::RdmaWrite, 256 * 2 + 9, 1);
    post(WorkOpcode::RdmaWriteWithImmediate, 256 * 2, 2);  // its receiver counts the bytes, so it stays one message
    std::vector<wire::Reth> where;
    std::vector<Operation> operations;
    std::vector<std::size_t> lengths;
    const std::vector<Datagram> burst = host->poll_all(now);
    for (const Datagram& datagram : burst) {
        const wire::Packet packet = packet_of(datagram);
        operations.push_back(packet.traits().operation);
        if (packet.traits().headers.has<wire::Reth>()) {
            where.push_back(packet.get<wire::Reth>());
        }
        lengths.push_back(packet.payload().size());
        EXPECT_EQ(packet.bth().ack_request, operations.size() == 3 || operations.size() == 5);
    }
    using enum Operation;
    EXPECT_EQ(operations, (std::vector{WriteOnly, WriteOnly, WriteOnly, WriteFirst, WriteLastImmediate}));
    EXPECT_EQ(lengths, (std::vector<std::size_t>{256, 256, 9, 256, 256}));
    EXPECT_EQ(where, (std::vector{wire::Reth{0x9000, Rkey{5}, 256}, wire::Reth{0x9100, Rkey{5}, 256},
                                  wire::Reth{0x9200, Rkey{5}, 9}, wire::Reth{0x9000, Rkey{5}, 512}}));
    acknowledge(1);
    EXPECT_EQ(completions(), Completions{});
    answer(2, wire::NakCode::PsnSequence);
    EXPECT_EQ(sent(), (Packets{{WriteOnly, 2}, {WriteFirst, 3}, {WriteLastImmediate, 4}}));
    acknowledge(2);
    EXPECT_EQ(completions(), (Completions{{1, kGood}}));
}

TEST_F(RcRequester, ReadsKeepTheirDepthAndFencesWaitForThem) {
    for (std::uint64_t id = 1; id <= 3; ++id) {
        post(WorkOpcode::RdmaRead, 4, id);
    }
    EXPECT_EQ(sent().size(), 2U);
    respond(Operation::ReadResponseOnly, 0, {1, 2, 3, 4});
    EXPECT_EQ(sent(), (Packets{{Operation::ReadRequest, 2}}));
    post(WorkOpcode::Send, 4, 4);
    post(WorkOpcode::Send, 4, 5, true, true);
    EXPECT_EQ(sent(), (Packets{{Operation::SendOnly, 3}}));
    respond(Operation::ReadResponseOnly, 1, {1, 2, 3, 4});
    EXPECT_TRUE(sent().empty());
    respond(Operation::ReadResponseOnly, 2, {5, 6, 7, 8});
    EXPECT_EQ(sent(), (Packets{{Operation::SendOnly, 4}}));
    acknowledge(4);
    EXPECT_EQ(completions(), (Completions{{1, kGood}, {2, kGood}, {3, kGood}, {4, kGood}, {5, kGood}}));
    EXPECT_EQ(*host->at(RcHost::kBase), 5);
}

TEST_F(RcRequester, ALostReadResponseIsAskedForFromWhereItIsMissing) {
    post(WorkOpcode::RdmaRead, 1000, 1);
    post(WorkOpcode::RdmaWrite, 4, 2);
    EXPECT_EQ(sent().size(), 2U);
    const std::vector<std::uint8_t> full(256, 7);
    respond(Operation::ReadResponseFirst, 0, full);
    respond(Operation::ReadResponseMiddle, 2, full);  // the second was lost
    const std::vector<Datagram> again = host->poll_all(now);
    ASSERT_EQ(again.size(), 2U);
    EXPECT_EQ(packet_of(again[0]).bth().psn, psn.plus(1));
    EXPECT_EQ(packet_of(again[0]).get<wire::Reth>(), (wire::Reth{0x9000 + 256, Rkey{5}, 744}));
    EXPECT_EQ(packet_of(again[1]).bth().psn, psn.plus(4));
    respond(Operation::ReadResponseFirst, 1, full);
    respond(Operation::ReadResponseMiddle, 2, full);
    respond(Operation::ReadResponseLast, 3, std::vector<std::uint8_t>(232, 9));
    EXPECT_EQ(completions(), (Completions{{1, kGood}}));
    EXPECT_EQ(*host->at(RcHost::kBase + 999), 9);
    EXPECT_EQ(*host->at(RcHost::kBase + 1000), 0);
    acknowledge(4);
    EXPECT_EQ(completions(), (Completions{{2, kGood}}));
}

TEST_F(RcRequester, AnAcknowledgementBehindAReadDoesNotCompleteIt) {
    post(WorkOpcode::RdmaWrite, 4, 1);
    post(WorkOpcode::RdmaRead, 4, 2);
    post(WorkOpcode::RdmaWrite, 4, 3);
    EXPECT_EQ(sent().size(), 3U);
    acknowledge(2);
    EXPECT_EQ(completions(), (Completions{{1, kGood}}));
    EXPECT_EQ(sent(), (Packets{{Operation::ReadRequest, 1}, {Operation::WriteOnly, 2}}));
    acknowledge(2);
    EXPECT_TRUE(sent().empty());  // one request for it is enough
    EXPECT_EQ(host->counters.of(RcCounter::ImpliedNak), 2U);
}

TEST_F(RcRequester, ReadResponsesOfAWrongLengthEndTheConnection) {
    post(WorkOpcode::RdmaRead, 300, 1);
    EXPECT_EQ(sent().size(), 1U);
    respond(Operation::ReadResponseFirst, 0, std::vector<std::uint8_t>(252));
    EXPECT_EQ(completions(), (Completions{{1, CompletionStatus::BadResponse}}));
}

TEST_F(RcRequester, AnAnswerOfAnotherKindIsDropped) {
    post(WorkOpcode::RdmaWrite, 4, 1);
    EXPECT_EQ(sent().size(), 1U);
    respond(Operation::ReadResponseOnly, 0, {1, 2, 3, 4});
    EXPECT_TRUE(completions().empty());
    EXPECT_EQ(host->counters.of(RcCounter::UnexpectedResponse), 1U);
    acknowledge(0);
    EXPECT_EQ(completions(), (Completions{{1, kGood}}));
}

TEST_F(RcRequester, AnAnswerThatRefusesBringsNoData) {
    post(WorkOpcode::RdmaRead, 4, 1);
    post(WorkOpcode::FetchAdd, 8, 2);
    EXPECT_EQ(sent().size(), 2U);
    for (const wire::Aeth::Syndrome& syndrome :
         std::array<wire::Aeth::Syndrome, 3>{NakCode::PsnSequence, NakCode::RemoteAccess, wire::RnrTimer{1}}) {
        wire::Packet packet(wire::Service::Rc, Operation::ReadResponseOnly);
        const std::array<std::uint8_t, 4> map{0xff, 0xff, 0xff, 0xff};
        packet.set_payload(map);
        packet.set(wire::Aeth{syndrome, Msn{}});
        take(packet, 0);
    }
    EXPECT_EQ(host->counters.of(RcCounter::UnexpectedResponse), 3U);
    EXPECT_EQ(*host->at(RcHost::kBase), 0);
    respond(Operation::ReadResponseOnly, 0, {1, 2, 3, 4});
    wire::Packet atomic(wire::Service::Rc, Operation::AtomicAcknowledge);
    atomic.set(wire::Aeth{NakCode::PsnSequence, Msn{}});
    take(atomic, 1);
    EXPECT_EQ(completions(), (Completions{{1, kGood}}));
    EXPECT_EQ(*host->at(RcHost::kBase), 1);
}

TEST_F(RcRequester, MemoryThatIsNotOursEndsTheRequestInItsTurn) {
    post(WorkOpcode::RdmaWrite, 4, 1);
    SendRequest bad;
    bad.wr_id = 2;
    ASSERT_EQ(host->post(bad, RcHost::kBase + RcHost::kBytes - 2, 4), PostVerdict::Posted);
    post(WorkOpcode::RdmaWrite, 4, 3);
    EXPECT_EQ(sent().size(), 1U);
    EXPECT_TRUE(completions().empty());
    acknowledge(0);
    EXPECT_TRUE(sent().empty());
    EXPECT_EQ(completions(), (Completions{{1, kGood}, {2, CompletionStatus::LocalProtection}, {3, kFlushed}}));
}

TEST_F(RcRequester, InlineBytesAreTakenWhenPosted) {
    std::vector<std::uint8_t> bytes{1, 2, 3};
    SendRequest request;
    request.is_inline = true;
    request.inline_bytes = bytes;
    ASSERT_EQ(host->qp->post_send(request), PostVerdict::Posted);
    bytes.assign({9, 9, 9});
    const std::vector<Datagram> burst = host->poll_all(now);
    ASSERT_EQ(burst.size(), 1U);
    const auto payload = packet_of(burst[0]).payload();
    EXPECT_EQ(std::vector<std::uint8_t>(payload.begin(), payload.end()), (std::vector<std::uint8_t>{1, 2, 3}));
    EXPECT_EQ(packet_of(burst[0]).pad_bytes(), 1U);
}

TEST_F(RcRequester, ALostCompletionStopsTheQueuePair) {
    host = std::make_unique<RcHost>(QpCapacity{}, 2);
    QpAttributes values = RcHost::usual_attributes();
    values.send_psn = psn;
    host->bring_to(QpState::Rts, values);
    for (std::uint64_t id = 1; id <= 3; ++id) {
        post(WorkOpcode::RdmaWrite, 4, id);
    }
    EXPECT_EQ(sent().size(), 3U);
    acknowledge(2);
    EXPECT_EQ(host->qp->state(), QpState::Err);
    EXPECT_EQ(host->qp->poll_event(), QpEvent::CqOverrun);
    EXPECT_TRUE(host->send_completions.overrun());
}

}  // namespace
}  // namespace cairn::roce::rc
