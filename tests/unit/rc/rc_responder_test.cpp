// The responder as packet traces: requests in, answers and memory out.
#include "tests/unit/rc/rc_responder_fixture.hpp"

namespace cairn::roce::rc {
namespace {

TEST_F(RcResponder, OneAcknowledgementAnswersABurst) {
    for (std::uint32_t i = 0; i < 20; ++i) {
        send(write(Operation::WriteOnly, psn.plus(i), RcHost::kBase + i, 1, 1));
    }
    expect_ack(psn.plus(19), 20);
    EXPECT_TRUE(host.poll_all().empty());
}

TEST_F(RcResponder, UnaskedItAcknowledgesEveryThirtySecondMessage) {
    for (std::uint32_t i = 0; i < kAckEveryMessages - 1; ++i) {
        wire::Packet packet = make(Operation::WriteOnly, psn.plus(i), 0, false);
        packet.set(wire::Reth{0, host.key, 0});
        send(packet);
    }
    EXPECT_TRUE(host.poll_all().empty());
    wire::Packet packet = make(Operation::WriteOnly, psn.plus(kAckEveryMessages - 1), 0, false);
    packet.set(wire::Reth{0, host.key, 0});
    send(packet);
    expect_ack(psn.plus(kAckEveryMessages - 1), kAckEveryMessages);
}

// The event comes once all of the WRITE is in memory. A WRITE that uses a receive request is reported by its
// completion.
TEST_F(RcResponder, WhoWantsToKnowIsToldOfEachWrite) {
    const int& writes = host.writes.count;
    send(write(Operation::WriteFirst, psn, RcHost::kBase, 2 * 256, 256));
    EXPECT_EQ(writes, 0);
    send(make(Operation::WriteLast, psn.next(), 256));
    EXPECT_EQ(writes, 1);
    send(make(Operation::WriteLast, psn.next(), 256));
    EXPECT_EQ(writes, 1) << "a duplicate";
    EXPECT_EQ(host.post_receive(1, RcHost::kBase, 256), PostVerdict::Posted);
    send(make(Operation::SendOnly, psn.plus(2), 16));
    send(read(psn.plus(3), RcHost::kBase, 16));
    EXPECT_EQ(writes, 1);
}

TEST_F(RcResponder, AGapIsReportedOnceUntilTheMissingPacketComes) {
    ASSERT_EQ(host.post_receive(1, RcHost::kBase, 100), PostVerdict::Posted);
    send(make(Operation::SendOnly, psn.plus(1), 4));
    send(make(Operation::SendOnly, psn.plus(2), 4));
    expect_answer(psn, NakCode::PsnSequence, 0);
    send(make(Operation::SendOnly, psn.plus(3), 4));
    EXPECT_TRUE(host.poll_all().empty());
    send(make(Operation::SendOnly, psn, 4));
    expect_ack(psn, 1);
    send(make(Operation::SendOnly, psn.plus(5), 4));
    expect_answer(psn.plus(1), NakCode::PsnSequence, 1);
    EXPECT_EQ(host.receive_completions.size(), 1U);
}

TEST_F(RcResponder, ANakNotYetSentIsForgottenWhenTheMissingPacketComes) {
    send(write(Operation::WriteOnly, psn.plus(1), RcHost::kBase, 1, 1));
    send(write(Operation::WriteOnly, psn, RcHost::kBase, 1, 1));
    expect_ack(psn, 1);
}

TEST_F(RcResponder, C9_105_DuplicatesAreAcknowledgedNotExecuted) {
    send(write(Operation::WriteOnly, psn, RcHost::kBase, 4, 4));
    send(write(Operation::WriteOnly, psn.plus(1), RcHost::kBase + 8, 4, 4));
    expect_ack(psn.plus(1), 2);
    *host.at(RcHost::kBase) = 0;
    send(write(Operation::WriteOnly, psn, RcHost::kBase, 4, 4));
    expect_ack(psn.plus(1), 2);
    EXPECT_EQ(*host.at(RcHost::kBase), 0);
    ASSERT_EQ(host.post_receive(1, RcHost::kBase, 100), PostVerdict::Posted);
    send(make(Operation::SendOnly, psn.plus(1), 4));
    expect_ack(psn.plus(1), 2);
    EXPECT_EQ(host.receive_completions.size(), 0U);
}

TEST_F(RcResponder, ADuplicateReadReadsAgainFromWhereItIsAsked) {
    send(read(psn, RcHost::kBase, 600));
    const Answers whole{{Operation::ReadResponseFirst, psn.value()},
                        {Operation::ReadResponseMiddle, psn.plus(1).value()},
                        {Operation::ReadResponseLast, psn.plus(2).value()}};
    EXPECT_EQ(answers(), whole);
    send(read(psn.plus(1), RcHost::kBase + 256, 344));
    const Answers rest{{Operation::ReadResponseFirst, psn.plus(1).value()},
                       {Operation::ReadResponseLast, psn.plus(2).value()}};
    EXPECT_EQ(answers(), rest);
    send(read(psn.plus(1), RcHost::kBase + 255, 344));  // another request than then
    send(read(psn.plus(1), RcHost::kBase + 256, 345));
    EXPECT_TRUE(answers().empty());
    EXPECT_EQ(host.counters.of(RcCounter::DuplicateUnknown), 2U);
}

TEST_F(RcResponder, ADuplicateReadMayAskForAPart) {
    send(write(Operation::WriteOnly, psn, RcHost::kBase, 1, 1));
    send(read(psn.plus(1), RcHost::kBase, 600));
    EXPECT_EQ(answers().size(), 3U);
    struct Part {
        std::uint32_t packet, bytes;
        std::vector<std::size_t> payloads;
    };
    for (const Part& part : {Part{0, 256, {256}}, Part{1, 100, {100}}, Part{0, 300, {256, 44}}, Part{2, 0, {0}},
                             Part{0, 600, {256, 256, 88}}}) {
        send(read(psn.plus(1 + part.packet), RcHost::kBase + 256 * part.packet, part.bytes));
        std::vector<std::size_t> payloads;
        Psn at = psn.plus(part.packet);
        for (const Datagram& datagram : host.poll_all()) {
            at = at.next();
            EXPECT_EQ(packet_of(datagram).bth().psn, at);
            payloads.push_back(packet_of(datagram).payload().size());
        }
        EXPECT_EQ(payloads, part.payloads);
    }
    EXPECT_EQ(host.counters.of(RcCounter::DuplicateUnknown), 0U);
    // A part that ends early does not acknowledge later requests.
    send(write(Operation::WriteOnly, psn, RcHost::kBase, 1, 1));
    send(read(psn.plus(1), RcHost::kBase, 256));
    const Answers both{{Operation::ReadResponseOnly, psn.plus(1).value()},
                       {Operation::Acknowledge, psn.plus(3).value()}};
    EXPECT_EQ(answers(), both);
}

TEST_F(RcResponder, AReadAskedForAgainMidwayStartsAgainAndThoseBehindItToo) {
    send(read(psn, RcHost::kBase, 512));
    send(read(psn.plus(2), RcHost::kBase, 512));
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(host.poll().has_value());  // both packets of the first, one of the second
    }
    send(read(psn.plus(1), RcHost::kBase + 256, 256));
    const Answers again{{Operation::ReadResponseOnly, psn.plus(1).value()},
                        {Operation::ReadResponseFirst, psn.plus(2).value()},
                        {Operation::ReadResponseLast, psn.plus(3).value()}};
    EXPECT_EQ(answers(), again);
}

TEST_F(RcResponder, ADuplicateAtomicIsAnsweredFromWhatWasSaved) {
    host.words[0] = 100;
    const auto original = [&] {
        const std::vector<Datagram> all = host.poll_all();
        EXPECT_EQ(all.size(), 1U);
        return packet_of(all.at(0)).get<wire::AtomicAckEth>().original;
    };
    send(add(psn, 5));
    EXPECT_EQ(original(), 100U);
    send(add(psn.plus(1), 7));
    EXPECT_EQ(original(), 105U);
    send(add(psn, 5));
    EXPECT_EQ(original(), 100U);
    EXPECT_EQ(host.words[0], 112U);
    send(read(psn, RcHost::kBase, 8));  // of another kind than then
    EXPECT_TRUE(answers().empty());
}

TEST_F(RcResponder, OnlyAsManyAnswersAreSavedAsThePeerMayWaitFor) {
    for (std::uint32_t i = 0; i < 5; ++i) {
        send(add(psn.plus(i), 1));
        EXPECT_EQ(host.poll_all().size(), 1U);
    }
    send(add(psn, 1));  // the depth is 4
    EXPECT_TRUE(answers().empty());
    send(add(psn.plus(1), 1));
    EXPECT_EQ(answers().size(), 1U);
    EXPECT_EQ(host.words[0], 5U);
}

TEST_F(RcResponder, MoreReadsThanTheDepthAreAnInvalidRequest) {
    for (std::uint32_t i = 0; i < 5; ++i) {
        send(read(psn.plus(i), RcHost::kBase, 8));
    }
    EXPECT_EQ(host.qp->state(), QpState::Err);
    const Answers all = answers();
    ASSERT_EQ(all.size(), 5U);
    EXPECT_EQ(all[4], (std::pair{Operation::Acknowledge, psn.plus(4).value()}));
    EXPECT_EQ(host.qp->poll_event(), QpEvent::CommunicationEstablished);
    EXPECT_EQ(host.qp->poll_event(), QpEvent::InvalidRequest);
}

// The answer was sent once, so the peer may have it: a peer that lost a later answer asks for both again.
TEST_F(RcResponder, AReadAskedForAgainDoesNotCountAgainstTheDepth) {
    const std::uint32_t depth = RcHost::usual_attributes().max_dest_rd_atomic;
    for (std::uint32_t i = 0; i < depth; ++i) {
        send(read(psn.plus(i), RcHost::kBase, 8));
    }
    EXPECT_EQ(answers().size(), depth);
    send(read(psn, RcHost::kBase, 8));
    send(read(psn.plus(depth), RcHost::kBase, 8));
    for (const auto& [operation, at] : answers()) {
        EXPECT_EQ(operation, Operation::ReadResponseOnly) << at;
    }
    EXPECT_EQ(host.qp->state(), QpState::Rtr);
    send(read(psn.plus(depth + 1), RcHost::kBase, 8));
    EXPECT_EQ(answers(), (Answers{{Operation::ReadResponseOnly, psn.plus(depth + 1).value()}}));
}

TEST_F(RcResponder, NotReadyIsSaidOnceAndTheMessageTakenWhenItIs) {
    send(make(Operation::SendOnly, psn, 4));
    expect_answer(psn, wire::RnrTimer{12}, 0);
    send(make(Operation::SendOnly, psn.plus(1), 4));
    EXPECT_TRUE(answers().empty());
    wire::Packet packet = write(Operation::WriteOnlyImmediate, psn, RcHost::kBase, 4, 4);
    send(packet);
    expect_answer(psn, wire::RnrTimer{12}, 0);
    EXPECT_EQ(*host.at(RcHost::kBase), 0);
    ASSERT_EQ(host.post_receive(1, RcHost::kBase + 8, 100), PostVerdict::Posted);
    send(packet);
    expect_ack(psn, 1);
    const std::vector<Completion> got = RcHost::drain(host.receive_completions);
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(got[0].opcode, CompletionOpcode::ReceiveRdmaWithImmediate);
    EXPECT_EQ(got[0].bytes, 4U);
    EXPECT_EQ(*host.at(RcHost::kBase), 0x5a);
}

TEST_F(RcResponder, ATooLongSendEndsWithInvalidRequestAndALengthError) {
    ASSERT_EQ(host.post_receive(7, RcHost::kBase, 300), PostVerdict::Posted);
    ASSERT_EQ(host.post_receive(8, RcHost::kBase, 300), PostVerdict::Posted);
    send(make(Operation::SendFirst, psn, 256));
    send(make(Operation::SendLast, psn.plus(1), 45));
    expect_answer(psn.plus(1), NakCode::InvalidRequest, 0);
    const std::vector<Completion> got = RcHost::drain(host.receive_completions);
    ASSERT_EQ(got.size(), 2U);
    EXPECT_EQ(got[0].wr_id, 7U);
    EXPECT_EQ(got[0].status, CompletionStatus::LocalLength);
    EXPECT_EQ(got[1].wr_id, 8U);
    EXPECT_EQ(got[1].status, CompletionStatus::Flushed);
    EXPECT_EQ(host.qp->state(), QpState::Err);
}

TEST_F(RcResponder, AReceiveRequestOverMemoryThatIsGoneIsOurOwnError) {
    ASSERT_EQ(host.post_receive(7, RcHost::kBase + RcHost::kBytes - 4, 300), PostVerdict::Posted);
    send(make(Operation::SendOnly, psn, 5));
    expect_answer(psn, NakCode::RemoteOperational, 0);
    const std::vector<Completion> got = RcHost::drain(host.receive_completions);
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(got[0].status, CompletionStatus::LocalProtection);
    EXPECT_EQ(host.qp->poll_event(), QpEvent::CommunicationEstablished);
    EXPECT_FALSE(host.qp->poll_event().has_value());
}

TEST_F(RcResponder, AnUnfinishedSendIsFlushedWithTheRest) {
    for (std::uint64_t id : {1U, 2U, 3U}) {
        ASSERT_EQ(host.post_receive(id, RcHost::kBase, 1000), PostVerdict::Posted);
    }
    send(make(Operation::SendFirst, psn, 256));
    ASSERT_EQ(host.qp->modify(QpState::Err, {}, {}), std::nullopt);
    const std::vector<Completion> got = RcHost::drain(host.receive_completions);
    ASSERT_EQ(got.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(got[i].wr_id, i + 1);
        EXPECT_EQ(got[i].status, CompletionStatus::Flushed);
    }
}

TEST_F(RcResponder, AReadWhoseRegionEndsIsRefusedWhereItStands) {
    send(read(psn, RcHost::kBase, 1024));
    ASSERT_TRUE(host.poll().has_value());
    ASSERT_TRUE(host.memory.destroy_region(host.key));
    expect_answer(psn.plus(1), NakCode::RemoteAccess, 1);
    EXPECT_EQ(host.qp->state(), QpState::Err);
    EXPECT_TRUE(answers().empty());
}

// The question may be late: its sender knew the answer, and took the memory back.
TEST_F(RcResponder, AReadAskedForAgainAfterItsRegionEndedIsPassedOver) {
    send(read(psn, RcHost::kBase, 600));
    EXPECT_EQ(answers().size(), 3U);
    send(add(psn.plus(3), 1));
    EXPECT_EQ(answers().size(), 1U);
    ASSERT_TRUE(host.memory.destroy_region(host.key));
    send(read(psn, RcHost::kBase, 600));
    EXPECT_TRUE(answers().empty());
    EXPECT_EQ(host.qp->state(), QpState::Rtr);
    send(read(psn.plus(1), RcHost::kBase + 256, 344));
    send(add(psn.plus(3), 1));
    EXPECT_EQ(answers(), (Answers{{Operation::AtomicAcknowledge, psn.plus(3).value()}})) << "what is kept is told";
    EXPECT_EQ(host.qp->state(), QpState::Rtr);
}

TEST_F(RcResponder, WrongSequencesAreInvalidRequestsAtTheirPsn) {
    send(write(Operation::WriteFirst, psn, RcHost::kBase, 600, 256));
    send(make(Operation::SendLast, psn.plus(1), 4));
    expect_answer(psn.plus(1), NakCode::InvalidRequest, 0);
    EXPECT_EQ(host.qp->state(), QpState::Err);
    send(make(Operation::SendOnly, psn.plus(1), 4));
    EXPECT_TRUE(answers().empty());
}

TEST_F(RcResponder, NothingOutsideTheRegionIsWritten) {
    std::vector<std::uint8_t> guarded(300, 0xee);
    const Rkey key =
        host.memory.register_region({host.pd, std::span(guarded).subspan(100, 100), 0x5000, kAllRights}).value();
    wire::Packet packet = make(Operation::WriteOnly, psn, 100);
    packet.set(wire::Reth{0x5001, key, 100});
    send(packet);
    expect_answer(psn, NakCode::RemoteAccess, 0);
    EXPECT_EQ(guarded, std::vector<std::uint8_t>(300, 0xee));
    EXPECT_EQ(host.qp->poll_event(), QpEvent::CommunicationEstablished);
    EXPECT_EQ(host.qp->poll_event(), QpEvent::AccessViolation);
}

TEST_F(RcResponder, AnAcknowledgementDoesNotOvertakeAReadAndIsSparedBehindIt) {
    send(write(Operation::WriteOnly, psn, RcHost::kBase, 4, 4));
    send(read(psn.plus(1), RcHost::kBase, 300));
    send(write(Operation::WriteOnly, psn.plus(3), RcHost::kBase, 4, 4));
    const Answers all{{Operation::ReadResponseFirst, psn.plus(1).value()},
                      {Operation::ReadResponseLast, psn.plus(2).value()},
                      {Operation::Acknowledge, psn.plus(3).value()}};
    EXPECT_EQ(answers(), all);
    send(write(Operation::WriteOnly, psn.plus(4), RcHost::kBase, 4, 4));
    send(read(psn.plus(5), RcHost::kBase, 4));
    const Answers one{{Operation::ReadResponseOnly, psn.plus(5).value()}};
    EXPECT_EQ(answers(), one);
}

}  // namespace
}  // namespace cairn::roce::rc
