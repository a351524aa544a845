// Completion channels and asynchronous events: when their descriptors become readable, and the events reported then.
#include "lib/verbs/events.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <array>

#include "tests/unit/verbs/verbs_pair.hpp"

namespace cairn::verbs {
namespace {

bool readable(int fd) {
    pollfd one{fd, POLLIN, 0};
    return poll(&one, 1, 0) == 1;
}

// Returns whether a sleeper wakes. Reads the descriptor, as a sleeper does.
bool wakes(int fd) {
    eventfd_t count = 0;
    return readable(fd) && eventfd_read(fd, &count) == 0;
}

struct VerbsEvents : VerbsPair {
    // Returns the next asynchronous event of the host, which must be of this kind.
    static AsyncEvent expect(VerbsHost& host, AsyncKind kind) {
        const std::optional<AsyncEvent> event = host.device.async_events().poll();
        EXPECT_TRUE(event.has_value());
        EXPECT_TRUE(event && event->kind == kind) << (event ? static_cast<int>(event->kind) : -1);
        return event.value_or(AsyncEvent{});
    }
    static void expect_nothing_more(VerbsHost& host) { EXPECT_FALSE(host.device.async_events().poll().has_value()); }
    PostVerdict send(std::uint32_t bytes, bool solicited = false) {
        const std::array<Sge, 1> sges{a.mr->sge(0, bytes)};
        SendRequest request;
        request.solicited = solicited;
        request.sges = sges;
        return a.qps.back()->post_send(request);
    }
    PostVerdict receive() {
        const std::array<Sge, 1> sges{b.mr->sge(0, 64)};
        return b.qps.back()->post_receive({1, sges});
    }
};

struct Channels : VerbsEvents {
    void SetUp() override {
        channel = b.device.create_channel().value();
        b.receives = b.device.create_cq(16, channel.get()).value();
        b.sends = b.device.create_cq(16, channel.get()).value();
        connect();
        for (int i = 0; i < 8; ++i) {
            ASSERT_EQ(receive(), PostVerdict::Posted);
        }
    }
    void TearDown() override {
        b.connector.reset();
        b.qps.clear();
        b.sends.reset();
        b.receives.reset();
    }
    std::unique_ptr<CompletionChannel> channel;
};

TEST_F(Channels, AnArmedQueueFiresOnceAndIsNamed) {
    ASSERT_EQ(send(8), PostVerdict::Posted);
    run();
    EXPECT_FALSE(readable(channel->fd()));
    b.receives->arm(Arm::Next);
    ASSERT_EQ(send(8), PostVerdict::Posted);
    ASSERT_EQ(send(8), PostVerdict::Posted);
    run();
    EXPECT_TRUE(readable(channel->fd()));
    EXPECT_EQ(channel->get_event(), b.receives.get());
    EXPECT_EQ(channel->get_event(), nullptr);
    EXPECT_FALSE(readable(channel->fd()));
    ASSERT_EQ(send(8), PostVerdict::Posted);
    run();
    EXPECT_FALSE(readable(channel->fd()));
    EXPECT_EQ(drain(*b.receives).size(), 4U);
}

TEST_F(Channels, WhoWaitsForSolicitedOnesSleepsThroughOthers) {
    b.receives->arm(Arm::Solicited);
    ASSERT_EQ(send(8), PostVerdict::Posted);
    run();
    EXPECT_FALSE(readable(channel->fd()));
    ASSERT_EQ(send(8, true), PostVerdict::Posted);
    run();
    EXPECT_TRUE(readable(channel->fd()));
}

TEST_F(Channels, EachQueueOfAChannelIsTold) {
    b.receives->arm(Arm::Next);
    b.sends->arm(Arm::Next);
    ASSERT_EQ(b.qps[0]->modify(QpState::Err), std::nullopt);  // flushes the receive requests, outside of a turn
    EXPECT_FALSE(readable(channel->fd()));
    EXPECT_EQ(b.worker->next_deadline(), Instant{});
    SendRequest nothing;
    ASSERT_EQ(b.qps[0]->post_send(nothing), PostVerdict::Posted);
    b.turn(now);
    EXPECT_TRUE(readable(channel->fd()));
    EXPECT_EQ(channel->get_event(), b.receives.get());
    EXPECT_EQ(channel->get_event(), b.sends.get());
    EXPECT_EQ(channel->get_event(), nullptr);
}

TEST_F(Channels, WhoReadsTheDescriptorIsWokenForEachQueue) {
    b.receives->arm(Arm::Next);
    b.sends->arm(Arm::Next);
    ASSERT_EQ(send(8), PostVerdict::Posted);
    SendRequest nothing;
    nothing.opcode = WorkOpcode::RdmaWrite;
    ASSERT_EQ(b.qps[0]->post_send(nothing), PostVerdict::Posted);
    run();
    for (int i = 0; i < 2; ++i) {
        EXPECT_TRUE(wakes(channel->fd()));
        EXPECT_NE(channel->get_event(), nullptr);
        b.worker->turn(now);
    }
    b.receives->arm(Arm::Next);
    ASSERT_EQ(send(8), PostVerdict::Posted);
    run();
    EXPECT_TRUE(wakes(channel->fd()));
}

TEST_F(Channels, AQueueThatEndsIsNotToldAnyMoreAndAChannelInUseStays) {
    b.receives->arm(Arm::Next);
    ASSERT_EQ(send(8), PostVerdict::Posted);
    run();
    EXPECT_FALSE(destroy(channel).ok());
    b.connector.reset();
    b.qps.clear();
    EXPECT_TRUE(destroy(b.receives).ok());
    EXPECT_EQ(channel->get_event(), nullptr);
    EXPECT_TRUE(destroy(b.sends).ok());
    EXPECT_TRUE(destroy(channel).ok());
    b.worker->turn(now);
}

TEST_F(VerbsEvents, TheDescriptorIsReadableUntilAllWasTaken) {
    connect();
    const int fd = b.device.async_events().descriptor().value();
    EXPECT_EQ(b.device.async_events().descriptor().value(), fd);
    EXPECT_FALSE(readable(fd));
    SendRequest read;
    const std::array<Sge, 1> sges{a.mr->sge(0, 8)};
    read.opcode = WorkOpcode::RdmaRead;
    read.sges = sges;
    read.rkey = Rkey{1};
    ASSERT_EQ(a.qps[0]->post_send(read), PostVerdict::Posted);
    run();
    EXPECT_TRUE(readable(fd));
    EXPECT_EQ(expect(b, AsyncKind::QpAccessError).source<Qp>(), b.qps[0].get());
    EXPECT_TRUE(readable(fd));
    expect_nothing_more(b);
    EXPECT_FALSE(readable(fd));
    expect_nothing_more(a);  // its completion reports it
}

// One event for each wake-up: later and remaining events wake it again.
TEST_F(VerbsEvents, WhoReadsTheDescriptorIsWokenForEachEvent) {
    connect();
    connect();
    const int fd = a.device.async_events().descriptor().value();
    for (const auto& qp : a.qps) {
        ASSERT_EQ(qp->modify(QpState::Sqd), std::nullopt);
    }
    run();
    for (std::size_t i = 0; i < a.qps.size(); ++i) {
        ASSERT_TRUE(wakes(fd));
        (void)expect(a, AsyncKind::SendQueueDrained);
        a.worker->turn(now);
    }
    expect_nothing_more(a);
    EXPECT_FALSE(wakes(fd));
    ASSERT_EQ(a.qps[0]->modify(QpState::Rts), std::nullopt);
    ASSERT_EQ(a.qps[0]->modify(QpState::Sqd), std::nullopt);
    run();
    EXPECT_TRUE(wakes(fd));
    (void)expect(a, AsyncKind::SendQueueDrained);
    expect_nothing_more(a);
    a.worker->turn(now);
    EXPECT_FALSE(wakes(fd));
}

TEST_F(VerbsEvents, WhatHappenedBeforeTheDescriptorWasMadeMakesItReadable) {
    connect();
    ASSERT_EQ(a.qps[0]->modify(QpState::Sqd), std::nullopt);
    run();
    EXPECT_TRUE(readable(a.device.async_events().descriptor().value()));
    EXPECT_EQ(expect(a, AsyncKind::SendQueueDrained).source<Qp>(), a.qps[0].get());
}

TEST_F(VerbsEvents, ARequestThatIsTooLongIsTheRespondersToTell) {
    connect();
    ASSERT_EQ(receive(), PostVerdict::Posted);
    ASSERT_EQ(send(65), PostVerdict::Posted);
    run();
    EXPECT_EQ(expect(b, AsyncKind::QpRequestError).source<Qp>(), b.qps[0].get());
}

TEST_F(VerbsEvents, AnOverrunIsTheCompletionQueuesAndTheQueuePairs) {
    a.sends = a.device.create_cq(2).value();
    connect();
    for (std::uint64_t i = 0; i < 4; ++i) {
        ASSERT_EQ(write(i, 8), PostVerdict::Posted);
    }
    run();
    EXPECT_EQ(expect(a, AsyncKind::CqError).source<Cq>(), a.sends.get());
    EXPECT_EQ(expect(a, AsyncKind::QpFatal).source<Qp>(), a.qps[0].get());
    expect_nothing_more(a);
    a.connector.reset();
    a.qps.clear();
    a.sends.reset();
}

TEST_F(VerbsEvents, ASharedReceiveQueueTellsItsLimitAndItsQueuePairsTheirLastRequest) {
    auto srq = b.device.create_srq(8, 1).value();
    const std::array<Sge, 1> sges{b.mr->sge(0, 64)};
    const std::array<ReceiveRequest, 2> two{{{1, sges}, {2, sges}}};
    EXPECT_EQ(srq->post(two).posted, 2U);
    srq->set_limit(2);
    auto qp = b.device.create_datagram_qp(*b.pd, {}, {*b.sends, *b.receives, srq.get()}).value();
    ASSERT_EQ(qp->bring_up(Qkey{1}), std::nullopt);
    auto from = a.device.create_datagram_qp(*a.pd, {}, {*a.sends, *a.receives}).value();
    ASSERT_EQ(from->bring_up(Qkey{1}), std::nullopt);
    const auto way = a.device.create_ah(b.port.local_address(), 0xc000, now).value();
    ASSERT_EQ(from->post_send(DatagramRequest{{}, way.get(), qp->qpn(), Qkey{1}}), PostVerdict::Posted);
    run();
    EXPECT_EQ(expect(b, AsyncKind::SrqLimitReached).source<Srq>(), srq.get());
    ASSERT_EQ(qp->modify(QpState::Err), std::nullopt);
    EXPECT_EQ(expect(b, AsyncKind::LastWqeReached).source<UdQp>(), qp.get());
    expect_nothing_more(b);
}

TEST_F(VerbsEvents, AQueuePairThatEndsTakesItsEventsWithIt) {
    a.qps.push_back(a.make_qp());
    connect();
    ASSERT_EQ(a.qps[1]->modify(QpState::Sqd), std::nullopt);
    run();
    a.connector.reset();
    a.qps.clear();
    expect_nothing_more(a);
}

}  // namespace
}  // namespace cairn::verbs
