// The objects of the verbs: limits, and the effects of misuse.
#include <array>
#include <cstring>

#include "tests/unit/verbs/verbs_pair.hpp"

namespace cairn::verbs {
namespace {

TEST_F(VerbsPair, LimitsAreWhatCanBeMade) {
    const Limits limits = a.device.limits();
    EXPECT_EQ(limits.path_mtu_bytes, 4096U);
    EXPECT_TRUE(a.device.create_cq(limits.completion_slots).ok());
    EXPECT_FALSE(a.device.create_cq(limits.completion_slots + 1).ok());
    EXPECT_FALSE(a.device.create_cq(0).ok());
    EXPECT_TRUE(a.device.create_srq(limits.queue_slots, limits.sges).ok());
    EXPECT_FALSE(a.device.create_srq(limits.queue_slots + 1, 1).ok());
    EXPECT_FALSE(a.device.create_srq(1, limits.sges + 1).ok());
    const QpQueues queues{*a.sends, *a.receives};
    QpCapacity of_datagrams;
    of_datagrams.service = Service::Ud;
    EXPECT_FALSE(a.device.create_qp(*a.pd, of_datagrams, queues).ok());
    EXPECT_TRUE(a.device.create_qp(*a.pd, {4, 4, limits.sges, limits.inline_bytes}, queues).ok());
    for (const QpCapacity& capacity : {QpCapacity{0, 1, 1, 0}, QpCapacity{limits.queue_slots + 1, 1, 1, 0},
                                       QpCapacity{1, 0, 1, 0}, QpCapacity{1, 1, limits.sges + 1, 0},
                                       QpCapacity{1, 1, 1, limits.inline_bytes + 1}, QpCapacity{1, 1, 1, 0, 1}}) {
        const auto refused = a.device.create_qp(*a.pd, capacity, queues);
        ASSERT_FALSE(refused.ok());
        EXPECT_NE(refused.error().text().find("out of range"), std::string::npos);
    }
}

TEST_F(VerbsPair, WhatIsInUseCanNotBeDestroyed) {
    a.qps.push_back(a.make_qp());
    EXPECT_FALSE(destroy(a.sends).ok());
    EXPECT_FALSE(destroy(a.receives).ok());
    const Status refused = destroy(a.pd);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().text().find("in use"), std::string::npos);
    EXPECT_TRUE(destroy(a.qps[0]).ok());
    EXPECT_FALSE(destroy(a.pd).ok());  // its region
    EXPECT_TRUE(destroy(a.mr).ok());
    EXPECT_TRUE(destroy(a.pd).ok());
    EXPECT_TRUE(destroy(a.sends).ok());
}

TEST_F(VerbsPair, ASharedReceiveQueueFeedsItsQueuePairsAndOutlivesThem) {
    auto srq = a.device.create_srq(4, 1).value();
    const std::array<Sge, 1> sges{a.mr->sge(0, 64)};
    const std::array<ReceiveRequest, 5> five{{{1, sges}, {2, sges}, {3, sges}, {4, sges}, {5, sges}}};
    const PostResult posted = srq->post(five);
    EXPECT_EQ(posted.posted, 4U);
    EXPECT_EQ(posted.verdict, PostVerdict::QueueFull);
    auto qp = a.device.create_qp(*a.pd, {}, {*a.sends, *a.receives, srq.get()}).value();
    EXPECT_FALSE(destroy(srq).ok());
    EXPECT_EQ(qp->post_receive(five[0]), PostVerdict::WrongState);
    EXPECT_TRUE(destroy(qp).ok());
    EXPECT_TRUE(destroy(srq).ok());
}

TEST_F(VerbsPair, PostingIsJudgedByStateAndRoom) {
    a.qps.push_back(a.make_qp({4, 4, 1, 0}));
    EXPECT_EQ(write(1, 8), PostVerdict::WrongState);
    EXPECT_EQ(a.qps[0]->modify(QpState::Rts), ModifyRefusal::NoTransition);
    a.qps.clear();
    connect();
    const std::array<Sge, 1> sges{a.mr->sge(0, 8)};
    std::vector<SendRequest> burst(130);
    for (SendRequest& request : burst) {
        request.opcode = WorkOpcode::RdmaWrite;
        request.sges = sges;
        request.remote_address = b.mr->address();
        request.rkey = b.mr->rkey();
    }
    const PostResult posted = a.qps[0]->post_send(burst);
    EXPECT_EQ(posted.posted, 128U);
    EXPECT_EQ(posted.verdict, PostVerdict::QueueFull);
    run();
    EXPECT_EQ(drain(*a.sends).size(), 128U);
}

TEST_F(VerbsPair, RegionsEndWithTheirObject) {
    connect();
    auto window = b.device.register_memory(*b.pd, b.memory().first(64), kAllRights, 0).value();
    EXPECT_EQ(window->address(), 0U);
    SendRequest request;
    request.opcode = WorkOpcode::RdmaWrite;
    const std::array<Sge, 1> sges{a.mr->sge(0, 8)};
    request.sges = sges;
    request.rkey = window->rkey();
    ASSERT_EQ(a.qps[0]->post_send(request), PostVerdict::Posted);
    run();
    EXPECT_EQ(drain(*a.sends).at(0).status, CompletionStatus::Success);
    window.reset();
    ASSERT_EQ(a.qps[0]->post_send(request), PostVerdict::Posted);
    run();
    EXPECT_EQ(drain(*a.sends).at(0).status, CompletionStatus::RemoteAccess);
    EXPECT_FALSE(a.qps[0]->poll_event().has_value());
    EXPECT_FALSE(a.device.register_memory(*a.pd, a.memory(), Rights{Right::RemoteWrite}).ok());
}

TEST_F(VerbsPair, WhatFoundTheSenderFullIsAmongTheCounters) {
    a.port.most_per_turn = 0;
    port::Path* const path = a.port.open_path({a.port.local_address(), b.port.local_address(), 0xc000, 0}, Instant{});
    for (std::size_t i = 0; i <= roce::Sender::kQueuePackets; ++i) {
        EXPECT_EQ(a.worker->counters().text().find("roce_tx_queue_full"), std::string::npos);
        a.worker->sender().send(a.worker->sender().take(), path, 32, {}, Instant{});
    }
    EXPECT_NE(a.worker->counters().text().find("roce_tx_queue_full"), std::string::npos);
}

TEST_F(VerbsPair, AnIdleConnectionCostsLittle) {
    EXPECT_LE(kIdleQpBytes, 4096U);
    RecordProperty("idle_bytes", static_cast<int>(kIdleQpBytes));
    // One SGE a request and a shared receive queue, as an RPC system has.
    EXPECT_LE(idle_qp_bytes({32, 1, 1, 0}), kIdleQpBytes + 3'000);
    EXPECT_GE(idle_qp_bytes({32, 1, 1, 0}), kIdleQpBytes + 32 * 64);
    EXPECT_LE(idle_qp_bytes({}), kIdleQpBytes + 32'000);
}

}  // namespace
}  // namespace cairn::verbs
