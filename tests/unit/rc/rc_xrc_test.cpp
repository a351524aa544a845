// Extended reliable connections: the queue of each message, the rights it needs, and the objects of each side.
#include <set>

#include "tests/unit/rc/rc_xrc.hpp"

namespace cairn::roce::rc {
namespace {

TEST_F(Xrc, SendsReachTheReceiveQueueThatTheyName) {
    for (const std::size_t queue : {std::size_t{1}, std::size_t{0}}) {
        ASSERT_EQ(host.post_receive(queue, 70 + queue), PostVerdict::Posted);
        post(request(WorkOpcode::Send, queue), 600);
        EXPECT_EQ(run(), (std::vector{Operation::SendFirst, Operation::SendMiddle, Operation::SendLast}));
        EXPECT_EQ(sent_status(), CompletionStatus::Success);
        EXPECT_TRUE(received(1 - queue).empty());
        const auto got = received(queue);
        ASSERT_EQ(got.size(), 1U);
        EXPECT_EQ(got[0].status, CompletionStatus::Success);
        EXPECT_EQ(got[0].wr_id, 70 + queue);
        EXPECT_EQ(got[0].bytes, 600U);
        EXPECT_EQ(got[0].qpn, target->qpn());
        EXPECT_EQ(got[0].srqn, host.queues[queue].srqn);
        EXPECT_EQ(*host.at(queue, 4096 + 599), 0x5a);
        EXPECT_EQ(*host.at(queue, 4096 + 600), 0);
    }
}

TEST_F(Xrc, ImmediateDataArriveWithSendsAndWrites) {
    for (const WorkOpcode opcode : {WorkOpcode::SendWithImmediate, WorkOpcode::RdmaWriteWithImmediate}) {
        ASSERT_EQ(host.post_receive(0, 5), PostVerdict::Posted);
        post(request(opcode, 0), 300);
        (void)run();
        EXPECT_EQ(sent_status(), CompletionStatus::Success);
        const auto got = received(0);
        ASSERT_EQ(got.size(), 1U);
        EXPECT_TRUE(got[0].has_immediate);
        EXPECT_EQ(got[0].immediate, 0x01020304U);
        EXPECT_EQ(got[0].bytes, 300U);
        EXPECT_EQ(got[0].srqn, host.queues[0].srqn);
    }
    EXPECT_EQ(*host.at(0, 299), 0x5a);
}

TEST_F(Xrc, WritesAndReadsReachTheMemoryOfTheQueuesDomain) {
    post(request(WorkOpcode::RdmaWrite, 1, 16), 700);
    EXPECT_EQ(run(), (std::vector{Operation::WriteFirst, Operation::WriteMiddle, Operation::WriteLast}));
    EXPECT_EQ(sent_status(), CompletionStatus::Success);
    EXPECT_EQ(*host.at(1, 15), 0);
    EXPECT_EQ(*host.at(1, 16), 0x5a);
    EXPECT_EQ(*host.at(1, 715), 0x5a);
    EXPECT_EQ(*host.at(1, 716), 0);
    std::memset(host.at(1), 0x77, 600);
    post(request(WorkOpcode::RdmaRead, 1), 600);
    EXPECT_EQ(run(), std::vector{Operation::ReadRequest});
    EXPECT_EQ(sent_status(), CompletionStatus::Success);
    EXPECT_EQ(*from.at(RcHost::kBase + 599), 0x77);
    EXPECT_EQ(*from.at(RcHost::kBase + 600), 0x5a);
}

TEST_F(Xrc, AtomicsWork) {
    *reinterpret_cast<std::uint64_t*>(host.at(0, 64)) = 40;
    SendRequest add = request(WorkOpcode::FetchAdd, 0, 64);
    add.swap_or_add = 2;
    post(add, 8);
    (void)run();
    EXPECT_EQ(sent_status(), CompletionStatus::Success);
    SendRequest swap = request(WorkOpcode::CompareSwap, 0, 64);
    swap.compare = 42;
    swap.swap_or_add = 7;
    post(swap, 8);
    (void)run();
    EXPECT_EQ(sent_status(), CompletionStatus::Success);
    EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(from.at(RcHost::kBase)), 42U);
    EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(host.at(0, 64)), 7U);
}

TEST_F(Xrc, AnInvalidationEndsTheKeyOfTheQueuesDomain) {
    ASSERT_EQ(host.post_receive(1, 1), PostVerdict::Posted);
    const Rkey ended =
        host.memory.register_region({host.queues[1].pd, {host.at(1), 8}, 0, Right::RemoteInvalidate}).value();
    SendRequest made = request(WorkOpcode::SendWithInvalidate, 1);
    made.invalidate = ended;
    post(made, 8);
    (void)run();
    const auto got = received(1);
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(got[0].invalidated, ended);
    EXPECT_FALSE(host.memory.destroy_region(ended));
}

// BTH, XRCETH (8 reserved bits, 24 of the number), then the other headers of the operation (A14), in every packet.
TEST_F(Xrc, TheQueueNumberStandsBehindTheBthOfEveryRequestPacket) {
    for (const WorkOpcode opcode : {WorkOpcode::Send, WorkOpcode::SendWithImmediate, WorkOpcode::RdmaWrite,
                                    WorkOpcode::RdmaWriteWithImmediate, WorkOpcode::RdmaRead, WorkOpcode::FetchAdd}) {
        const std::uint32_t bytes = opcode == WorkOpcode::FetchAdd ? 8 : 600;
        post(request(opcode, 0), bytes);
        std::size_t payload = 0;
        for (const Datagram& datagram : from.poll_all(now)) {
            const wire::Packet made = packet_of(datagram);
            EXPECT_EQ(datagram[0] >> 5U, 5U);
            EXPECT_EQ((std::vector<std::uint8_t>(datagram.begin() + 12, datagram.begin() + 16)),
                      (std::vector<std::uint8_t>{0, 0xab, 0xcd, 0xef}));
            payload += made.payload().size();
        }
        EXPECT_EQ(payload, is_read_or_atomic(opcode) ? 0 : bytes);
    }
    // An atomic, the longest: 12 + 4 + 28 and the ICRC.
    const Datagram retried = [this] {
        now = from.qp->next_deadline();
        from.qp->on_timeout(now);
        return from.poll_all(now).back();
    }();
    EXPECT_EQ(retried.size(), 12U + 4 + 28 + 4);
    EXPECT_EQ(retried[0], 0xb4);
}

// A process has one initiator for each process group that it talks to, for any number of receivers. Here three
// processes send to two queues of one process.
TEST_F(Xrc, ManyInitiatorsShareTheQueuesAndOneOfThemReachesAll) {
    struct Pair {
        RcHost from{initiating()};
        std::unique_ptr<QueuePair> target;
    };
    std::array<Pair, 3> pairs;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        pairs[i].target = host.make_target(Qpn{static_cast<std::uint32_t>(0x20 + i)});
        bring_up(*pairs[i].target);
        bring_up(*pairs[i].from.qp);
    }
    for (std::uint32_t round = 0; round < 30; ++round) {
        Pair& pair = pairs[round % 3];
        const std::size_t queue = round / 3 % 2;
        ASSERT_EQ(host.post_receive(queue, round), PostVerdict::Posted);
        ASSERT_EQ(pair.from.post(request(WorkOpcode::Send, queue), RcHost::kBase, 300 + round), PostVerdict::Posted);
        (void)run(pair.from, *pair.target, now);
        const auto got = received(queue);
        ASSERT_EQ(got.size(), 1U);
        EXPECT_EQ(got[0].wr_id, round);
        EXPECT_EQ(got[0].qpn, pair.target->qpn());
        EXPECT_EQ(got[0].srqn, host.queues[queue].srqn);
        EXPECT_EQ(got[0].bytes, 300 + round);
    }
}

TEST_F(Xrc, AnEmptyQueueMakesItsSendersWaitAndNoOthers) {
    ASSERT_EQ(host.post_receive(1, 9), PostVerdict::Posted);
    EXPECT_TRUE(std::holds_alternative<wire::RnrTimer>(answer(packet(Operation::SendOnly, 0, srqn(0)))));
    EXPECT_EQ(answer(packet(Operation::SendOnly, 0, srqn(1))), kAck);
    EXPECT_EQ(received(1).size(), 1U);
    ASSERT_EQ(host.post_receive(0, 3), PostVerdict::Posted);
    EXPECT_EQ(answer(packet(Operation::SendOnly, 1, srqn(0))), kAck);
    EXPECT_EQ(received(0).size(), 1U);
}

TEST_F(Xrc, AQueueSaysThatItRunsShortAsAnyOther) {
    ASSERT_EQ(host.post_receive(0, 1), PostVerdict::Posted);
    ASSERT_EQ(host.post_receive(0, 2), PostVerdict::Posted);
    host.queues[0].receives.set_limit(2);
    EXPECT_EQ(answer(packet(Operation::SendOnly, 0, srqn(0))), kAck);
    EXPECT_TRUE(host.queues[0].receives.take_limit_event());
}

// Two answers wait, each with the rights of its request.
TEST_F(Xrc, AnswersReadTheMemoryOfTheirOwnRequestsDomain) {
    *host.at(0) = 1;
    *host.at(1) = 2;
    for (const std::size_t queue : {std::size_t{0}, std::size_t{1}}) {
        wire::Packet read = packet(Operation::ReadRequest, static_cast<std::uint32_t>(queue), srqn(queue));
        read.set(wire::Reth{XrcHost::kBase, host.queues[queue].key, 1});
        target->on_packet(read, now);
    }
    for (const std::uint8_t wanted : {std::uint8_t{1}, std::uint8_t{2}}) {
        OutPacket out;
        ASSERT_EQ(target->poll_transmit({&out, 1}, now), 1U);
        const Datagram datagram = datagram_of(out);
        const wire::Packet got = packet_of(datagram);
        ASSERT_EQ(got.traits().operation, Operation::ReadResponseOnly);
        EXPECT_EQ(got.payload()[0], wanted);
    }
}

TEST_F(Xrc, EachSideHasTheAttributesOfItsHalf) {
    const auto required = [](QpState from_state, QpState to, bool target_side) {
        return find_transition(from_state, to, {wire::Service::Xrc, target_side}).value().required;
    };
    using enum Attribute;
    const AttributeSet both = AttributeSet::of(Path, PathMtu, DestQpn, ReceivePsn);
    EXPECT_EQ(required(QpState::Init, QpState::Rtr, false), both);
    EXPECT_EQ(required(QpState::Init, QpState::Rtr, true), both.with(AttributeSet::of(MaxDestRdAtomic, MinRnrTimer)));
    EXPECT_EQ(required(QpState::Rtr, QpState::Rts, false),
              AttributeSet::of(SendPsn, AckTimeout, Attribute::RetryCount, RnrRetry, MaxRdAtomic));
    EXPECT_EQ(required(QpState::Rtr, QpState::Rts, true), AttributeSet::of(SendPsn, AckTimeout));
    EXPECT_FALSE(find_transition(QpState::Sqe, QpState::Rts, wire::Service::Xrc).has_value());
}

TEST_F(Xrc, ATargetAnswersFromRtrOn) {
    target = host.make_target();
    bring_up(*target, QpState::Rtr);
    ASSERT_EQ(host.post_receive(0, 1), PostVerdict::Posted);
    EXPECT_EQ(answer(packet(Operation::SendOnly, 0, srqn(0))), kAck);
    EXPECT_EQ(target->poll_event(), QpEvent::CommunicationEstablished);
    EXPECT_EQ(received(0).size(), 1U);
}

TEST_F(Xrc, AStoppedTargetTakesFromNoQueueAnyMore) {
    ASSERT_EQ(target->modify(QpState::Err, {}, {}), std::nullopt);
    EXPECT_EQ(target->poll_event(), QpEvent::LastWqeReached);
    ASSERT_EQ(host.post_receive(0, 1), PostVerdict::Posted);
    target->on_packet(packet(Operation::SendOnly, 0, srqn(0)), now);
    EXPECT_EQ(host.queues[0].receives.size(), 1U);
}

TEST(XrcTable, NumbersGoUpSkipWhatIsTakenAndZero) {
    ReceiveQueue receives(1, 1);
    CompletionQueue completions(1);
    XrcTable table{Srqn{0xfffffd}};
    const Xrcd domain = table.create_domain();
    const Xrcd other = table.create_domain();
    EXPECT_NE(domain, other);
    const Receiver receiver{&receives, &completions, Pd{3}, {}};
    std::vector<Srqn> given;
    for (int i = 0; i < 100; ++i) {
        given.push_back(table.add(i % 2 == 0 ? domain : other, receiver).value());
    }
    EXPECT_EQ(given[1], Srqn{0xffffff});
    EXPECT_EQ(given[2], Srqn{1});
    EXPECT_EQ(std::set<Srqn>(given.begin(), given.end()).size(), given.size());
    for (std::size_t i = 0; i < given.size(); ++i) {
        const Receiver* const found = table.find(given[i], i % 2 == 0 ? domain : other);
        ASSERT_NE(found, nullptr);
        EXPECT_EQ(found->srqn, given[i]);
        EXPECT_EQ(found->pd, Pd{3});
        EXPECT_EQ(table.find(given[i], i % 2 == 0 ? other : domain), nullptr);
    }
    table.remove(given[7]);
    EXPECT_EQ(table.find(given[7], other), nullptr);
    EXPECT_EQ(table.size(), 99U);
    EXPECT_NE(table.add(other, receiver).value(), given[7]);  // not at once
}

TEST(XrcTable, IsFullAtItsLimit) {
    ReceiveQueue receives(1, 1);
    CompletionQueue completions(1);
    XrcTable table;
    const Xrcd domain = table.create_domain();
    for (std::uint32_t i = 0; i < kMaxXrcQueues; ++i) {
        ASSERT_TRUE(table.add(domain, {&receives, &completions, {}, {}}).ok());
    }
    EXPECT_FALSE(table.add(domain, {&receives, &completions, {}, {}}).ok());
    table.remove(Srqn{5});
    EXPECT_EQ(table.add(domain, {&receives, &completions, {}, {}}).value().value % kMaxXrcQueues, 5U);
}

}  // namespace
}  // namespace cairn::roce::rc
