// Unreliable connections: sent packets and their completions, the effect of a gap, SQE; and recorded traces.
#include <gtest/gtest.h>

#include "tests/unit/rc/rc_capture.hpp"

namespace cairn::roce::rc {
namespace {

using wire::Operation;
using enum wire::Operation;

QpCapacity unreliable() {
    QpCapacity capacity;
    capacity.service = wire::Service::Uc;
    return capacity;
}

struct UcQueuePair : testing::Test {
    RcHost host{unreliable()};
    Psn psn{0xfffffe};
    std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(256, 0x5a);

    void SetUp() override { start(host); }

    void start(RcHost& one, Rights access = kAllRemote) const {
        QpAttributes values = RcHost::usual_attributes();
        values.receive_psn = psn;
        values.send_psn = psn;
        values.access = access;
        one.bring_to(QpState::Rts, values);
    }
    wire::Packet make(Operation operation, std::uint32_t at, std::size_t payload = 256) {
        wire::Packet packet(wire::Service::Uc, operation);
        packet.set_payload(std::span(bytes).first(payload));
        wire::Bth bth;
        bth.psn = psn.plus(at);
        packet.set_bth(bth);
        return packet;
    }
    wire::Packet write(Operation operation, std::uint32_t at, std::uint32_t total, std::size_t payload = 256) {
        wire::Packet packet = make(operation, at, payload);
        packet.set(wire::Reth{RcHost::kBase, host.key, total});
        return packet;
    }
    void receive(std::uint64_t wr_id, std::uint32_t room = 1000) {
        ASSERT_EQ(host.post_receive(wr_id, RcHost::kBase + 4096, room), PostVerdict::Posted);
    }
    // Returns wr_id and length of all received messages.
    std::vector<std::pair<std::uint64_t, std::uint32_t>> received() {
        std::vector<std::pair<std::uint64_t, std::uint32_t>> all;
        for (const Completion& one : RcHost::drain(host.receive_completions)) {
            EXPECT_EQ(one.status, CompletionStatus::Success);
            all.emplace_back(one.wr_id, one.bytes);
        }
        return all;
    }
    using Received = std::vector<std::pair<std::uint64_t, std::uint32_t>>;
    std::uint64_t count(RcCounter reason) { return host.counters.of(reason); }
};

TEST_F(UcQueuePair, ARequestIsCompleteWithItsLastPacketAndNothingIsAskedFor) {
    SendRequest request;
    request.wr_id = 1;
    request.opcode = WorkOpcode::RdmaWriteWithImmediate;
    ASSERT_EQ(host.post(request, RcHost::kBase, 600), PostVerdict::Posted);
    const std::vector<Operation> wanted{WriteFirst, WriteMiddle, WriteLastImmediate};
    for (std::uint32_t i = 0; i < 3; ++i) {
        EXPECT_EQ(host.send_completions.size(), 0U);
        const std::optional<Datagram> one = host.poll();
        ASSERT_TRUE(one.has_value());
        const wire::Packet packet = packet_of(*one);
        EXPECT_EQ(packet.traits().service, wire::Service::Uc);
        EXPECT_EQ(packet.traits().operation, wanted[i]);
        EXPECT_EQ(packet.bth().psn, psn.plus(i));
        EXPECT_FALSE(packet.bth().ack_request);
    }
    EXPECT_EQ(host.send_completions.size(), 1U);
    EXPECT_EQ(host.qp->next_deadline(), Instant::never());
}

TEST_F(UcQueuePair, NoWindowHoldsItBack) {
    QpCapacity capacity = unreliable();
    capacity.window_packets = 2;
    RcHost narrow(capacity);
    start(narrow);
    ASSERT_EQ(narrow.post({}, RcHost::kBase, 256 * 100), PostVerdict::Posted);
    EXPECT_EQ(narrow.poll_all().size(), 100U);
}

TEST_F(UcQueuePair, OnlySendsWritesAndLocalWorkArePosted) {
    for (unsigned i = 0; i < static_cast<unsigned>(WorkOpcode::Count); ++i) {
        SendRequest request;
        request.opcode = static_cast<WorkOpcode>(i);
        const bool known = request.opcode == WorkOpcode::Send || request.opcode == WorkOpcode::SendWithImmediate ||
                           request.opcode == WorkOpcode::RdmaWrite ||
                           request.opcode == WorkOpcode::RdmaWriteWithImmediate || is_local(request.opcode);
        EXPECT_EQ(host.post(request, RcHost::kBase, 8), known ? PostVerdict::Posted : PostVerdict::BadOpcode) << i;
    }
}

TEST_F(UcQueuePair, MessagesInOrderArriveWithoutAnswer) {
    receive(1);
    receive(2);
    host.take(make(SendFirst, 0));
    host.take(make(SendMiddle, 1));
    host.take(make(SendLast, 2, 10));
    host.take(write(WriteOnlyImmediate, 3, 100, 100));
    EXPECT_EQ(received(), (Received{{1, 522}, {2, 100}}));
    EXPECT_EQ(*host.at(RcHost::kBase + 99), 0x5a);
    EXPECT_EQ(*host.at(RcHost::kBase + 4096 + 521), 0x5a);
    EXPECT_TRUE(host.poll_all().empty());
}

TEST_F(UcQueuePair, AGapDropsTheRestOfItsMessageAndNothingElse) {
    receive(1);
    host.take(make(SendFirst, 0));
    host.take(make(SendMiddle, 2));  // 1 was lost
    host.take(make(SendMiddle, 3));
    host.take(make(SendLast, 4, 10));
    EXPECT_EQ(received(), Received{});
    EXPECT_EQ(count(RcCounter::UnreliableCut), 1U);
    EXPECT_EQ(count(RcCounter::UnreliableRest), 3U);
    host.take(make(SendOnly, 5, 7));
    EXPECT_EQ(received(), (Received{{1, 7}}));  // the same receive request
    EXPECT_TRUE(host.poll_all().empty());
    EXPECT_EQ(host.qp->state(), QpState::Rts);
}

TEST_F(UcQueuePair, AnyFirstOrOnlyBeginsAnewWhateverItsNumber) {
    receive(1);
    receive(2);
    host.take(make(SendFirst, 0));
    host.take(make(SendFirst, 1));  // the Last was never sent, or lost 2^24 packets ago
    host.take(make(SendLast, 2, 4));
    host.take(make(SendOnly, 70'000, 4));
    host.take(make(SendLast, 70'001, 4));
    EXPECT_EQ(received(), (Received{{1, 260}, {2, 4}}));
    EXPECT_EQ(count(RcCounter::UnreliableCut), 1U);
    EXPECT_EQ(count(RcCounter::UnreliableRest), 1U);
}

TEST_F(UcQueuePair, AnotherKindOfMessageCutsTheOneUnderWay) {
    receive(1);
    receive(2);
    host.take(make(SendFirst, 0));
    host.take(make(WriteMiddle, 1));
    host.take(make(SendLast, 2, 4));
    EXPECT_EQ(received(), Received{});
    host.take(make(SendFirst, 3));
    host.take(write(WriteFirst, 4, 300));
    host.take(make(WriteLastImmediate, 5, 44));  // takes the request that the SEND did not use
    host.take(make(SendOnly, 6, 1));
    EXPECT_EQ(received(), (Received{{1, 300}, {2, 1}}));
}

TEST_F(UcQueuePair, WhatIsNotAllowedIsDroppedInSilence) {
    host.take(make(SendOnly, 0, 4));  // no receive request
    receive(1, 300);
    host.take(make(SendFirst, 1));
    host.take(make(SendLast, 2, 45));  // too long by one
    wire::Packet outside = write(WriteOnly, 3, 256);
    outside.set(wire::Reth{RcHost::kBase + RcHost::kBytes - 255, host.key, 256});
    host.take(outside);
    host.take(write(WriteFirst, 4, 300));
    host.take(make(WriteLast, 5, 45));  // more than the RETH says
    host.take(write(WriteFirst, 6, 300, 255));
    EXPECT_EQ(count(RcCounter::UnreliableRefused), 5U);
    EXPECT_EQ(host.qp->state(), QpState::Rts);
    EXPECT_TRUE(host.poll_all().empty());
    EXPECT_EQ(*host.at(RcHost::kBase + RcHost::kBytes - 1), 0);
    host.take(make(SendOnly, 7, 4));
    EXPECT_EQ(received(), (Received{{1, 4}}));
    RcHost closed(unreliable());
    start(closed, {});
    closed.take(write(WriteOnly, 0, 4, 4));
    EXPECT_EQ(closed.counters.of(RcCounter::UnreliableRefused), 1U);
    EXPECT_EQ(*closed.at(RcHost::kBase), 0);
}

TEST_F(UcQueuePair, AReceiveRequestOverForeignMemoryIsOurOwnError) {
    ASSERT_EQ(host.post_receive(7, RcHost::kBase + RcHost::kBytes - 4, 300), PostVerdict::Posted);
    host.take(make(SendOnly, 0, 5));
    const std::vector<Completion> got = RcHost::drain(host.receive_completions);
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(got[0].status, CompletionStatus::LocalProtection);
    EXPECT_EQ(host.qp->state(), QpState::Err);
    EXPECT_TRUE(host.poll_all().empty());
}

TEST_F(UcQueuePair, AKeptReceiveRequestIsFlushedFirstAndForgottenByReset) {
    receive(1);
    receive(2);
    host.take(make(SendFirst, 0));
    host.take(make(SendLast, 2, 4));
    ASSERT_EQ(host.qp->modify(QpState::Err, {}, {}), std::nullopt);
    const std::vector<Completion> got = RcHost::drain(host.receive_completions);
    ASSERT_EQ(got.size(), 2U);
    EXPECT_EQ(got[0].wr_id, 1U);
    EXPECT_EQ(got[1].status, CompletionStatus::Flushed);
    ASSERT_EQ(host.qp->modify(QpState::Reset, {}, {}), std::nullopt);
    start(host);
    host.take(make(SendOnly, 0, 4));
    EXPECT_EQ(count(RcCounter::UnreliableRefused), 1U);
}

// (IBTA vol. 1, 10.3.1.6)
TEST_F(UcQueuePair, AFailedSendRequestLeadsToSqeAndBack) {
    receive(1);
    for (std::uint64_t id = 1; id <= 3; ++id) {
        SendRequest request;
        request.wr_id = id;
        const std::uint64_t at = id == 2 ? RcHost::kBase + RcHost::kBytes - 2 : RcHost::kBase;
        ASSERT_EQ(host.post(request, at, 4), PostVerdict::Posted);
    }
    EXPECT_EQ(host.poll_all().size(), 1U);
    EXPECT_EQ(host.qp->state(), QpState::Sqe);
    ASSERT_EQ(host.post({}, RcHost::kBase, 4), PostVerdict::Posted);  // flushed at once
    const std::vector<Completion> got = RcHost::drain(host.send_completions);
    ASSERT_EQ(got.size(), 4U);
    EXPECT_EQ(got[0].status, CompletionStatus::Success);
    EXPECT_EQ(got[1].status, CompletionStatus::LocalProtection);
    EXPECT_EQ(got[2].status, CompletionStatus::Flushed);
    EXPECT_EQ(got[3].status, CompletionStatus::Flushed);
    host.take(make(SendOnly, 0, 4));
    EXPECT_EQ(received(), (Received{{1, 4}}));
    ASSERT_EQ(host.qp->modify(QpState::Rts, {}, {}), std::nullopt);
    ASSERT_EQ(host.post({}, RcHost::kBase, 4), PostVerdict::Posted);
    const std::vector<Datagram> next = host.poll_all();
    ASSERT_EQ(next.size(), 1U);
    EXPECT_EQ(packet_of(next[0]).bth().psn, psn.plus(1));
}

TEST_F(UcQueuePair, DrainingEndsWithTheLastPacketHandedOut) {
    ASSERT_EQ(host.post({}, RcHost::kBase, 300), PostVerdict::Posted);
    ASSERT_EQ(host.post({}, RcHost::kBase, 300), PostVerdict::Posted);
    ASSERT_TRUE(host.poll().has_value());
    ASSERT_EQ(host.qp->modify(QpState::Sqd, {}, {}), std::nullopt);
    EXPECT_FALSE(host.qp->poll_event().has_value());
    EXPECT_EQ(host.poll_all().size(), 1U);
    EXPECT_EQ(host.qp->poll_event(), QpEvent::SendQueueDrained);
}

TEST_F(UcQueuePair, PacketsOfAReliableConnectionAreDropped) {
    receive(1);
    wire::Packet packet(wire::Service::Rc, SendOnly);
    wire::Bth bth;
    bth.psn = psn;
    packet.set_bth(bth);
    host.take(packet);
    EXPECT_EQ(count(RcCounter::WrongService), 1U);
    EXPECT_EQ(received(), Received{});
}

// The recorded messages of two Linux Soft-RoCE hosts arrive complete.
TEST(UcGolden, EveryRecordedMessageIsTaken) {
    for (const Conversation& conversation : replayed(wire::Service::Uc)) {
        SCOPED_TRACE(conversation.name);
        RcHost host(unreliable());
        std::uint64_t address = RcHost::kBase;
        std::vector<std::uint8_t> wanted;
        std::size_t messages = 0;
        for (const Recorded& recorded : conversation.packets) {
            const wire::Packet packet = recorded.packet();
            if (packet.traits().headers.has<wire::Reth>()) {
                address = packet.get<wire::Reth>().address;
            }
        }
        const Rkey key = host.memory.register_region({host.pd, host.span(), address, kAllRights}).value();
        host.bring_to(QpState::Rts, recorded_attributes(conversation));
        bool sends = false;
        for (const Recorded& recorded : conversation.packets) {
            wire::Packet packet = recorded.packet();
            sends = request_traits(packet.traits().operation).kind == MessageKind::Send;
            if (packet.traits().starts_message()) {
                ASSERT_EQ(host.post_receive(0, RcHost::kBase, 4096), PostVerdict::Posted);
                wanted.clear();
            }
            wanted.insert(wanted.end(), packet.payload().begin(), packet.payload().end());
            if (packet.traits().headers.has<wire::Reth>()) {
                wire::Reth reth = packet.get<wire::Reth>();
                reth.rkey = key;
                packet.set(reth);
            }
            const bool completes = sends || packet.traits().headers.has<wire::ImmDt>();
            messages += packet.traits().ends_message() && completes ? 1U : 0U;
            host.take(packet);
            if (packet.traits().ends_message()) {
                EXPECT_EQ(std::vector<std::uint8_t>(host.at(RcHost::kBase), host.at(RcHost::kBase + wanted.size())),
                          wanted);
            }
        }
        EXPECT_EQ(host.receive_completions.size(), messages);
        EXPECT_EQ(host.qp->state(), QpState::Rts);
    }
}

}  // namespace
}  // namespace cairn::roce::rc
