// Queue pairs and ports that fail on purpose, as programs see it.
#include "lib/ibverbs/planned_failures.hpp"

#include "lib/ibverbs/objects.hpp"
#include "lib/ibverbs/qp.hpp"
#include "tests/unit/ibverbs/verbs_rig.hpp"

namespace cairn::ibverbs {
namespace {

class PlannedFailuresTest : public VerbsTest {
protected:
    std::shared_ptr<PlannedFailures>& plan(const port::Faults& faults) const {
        Context& of = Context::of(context);
        of.failures = PlannedFailures::of(of.adapter, of.port, faults);
        return of.failures;
    }
    std::shared_ptr<PlannedFailures>& plan_queue_pair(Duration at) const {
        port::Faults faults;
        faults.queue_pair = at;
        return plan(faults);
    }
    template <class Work>
    void with_lock(Work&& work) const {
        Adapter& adapter = *Context::of(context).adapter;
        const std::lock_guard hold(adapter.lock());
        work();
        adapter.settle();
    }
    static ibv_qp_state state_of(ibv_qp* qp) {
        ibv_qp_attr now{};
        ibv_qp_init_attr init{};
        EXPECT_EQ(ibv_query_qp(qp, &now, IBV_QP_STATE, &init), 0);
        return now.qp_state;
    }
    ibv_port_state port_state() const {
        ibv_port_attr attributes{};
        EXPECT_EQ(ibv_query_port(context, 1, &attributes), 0);
        return attributes.state;
    }
    ibv_async_event next_event() const {
        ibv_async_event event{};
        EXPECT_EQ(ibv_get_async_event(context, &event), 0);
        ibv_ack_async_event(&event);
        return event;
    }
    void expect_failed(ibv_qp* qp) const {
        const ibv_async_event event = next_event();
        EXPECT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
        EXPECT_EQ(event.element.qp, qp);
        EXPECT_EQ(state_of(qp), IBV_QPS_ERR);
    }
};

TEST_F(PlannedFailuresTest, ThereAreNoneUnlessTheyAreAskedFor) {
    EXPECT_EQ(plan({}), nullptr);
    port::Faults of_the_network;
    of_the_network.loss_per_million = 1;
    EXPECT_EQ(plan(of_the_network), nullptr);
}

TEST_F(PlannedFailuresTest, TheFirstThatWasReadyFailsAndNoOther) {
    ibv_qp* const first = make_qp(pd);
    ibv_qp* const second = make_qp(pd);
    connect_both(first, second);
    ibv_recv_wr request{};
    request.wr_id = 5;
    ibv_recv_wr* refused = nullptr;
    ASSERT_EQ(ibv_post_recv(first, &request, &refused), 0);
    PlannedFailures& failures = *plan_queue_pair({});
    with_lock([&] {
        failures.on_ready(Qp::of(first));
        failures.on_ready(Qp::of(second));
    });
    expect_failed(first);
    const ibv_wc flushed = next_completion();
    EXPECT_EQ(flushed.wr_id, 5U);
    EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
    with_lock([] {});
    EXPECT_EQ(state_of(second), IBV_QPS_RTS);
    EXPECT_EQ(ibv_destroy_qp(first), 0);
    EXPECT_EQ(ibv_destroy_qp(second), 0);
}

TEST_F(PlannedFailuresTest, IfNoneIsReadyTheNextOneFails) {
    plan_queue_pair({});
    ibv_qp* const qp = make_qp(pd, IBV_QPT_UD);
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_INIT;
    to.port_num = 1;
    ASSERT_EQ(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
    EXPECT_EQ(state_of(qp), IBV_QPS_INIT);
    to.qp_state = IBV_QPS_RTR;
    ASSERT_EQ(ibv_modify_qp(qp, &to, IBV_QP_STATE), 0);
    expect_failed(qp);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(PlannedFailuresTest, WhatHasEndedDoesNotFail) {
    plan_queue_pair(milliseconds(300));
    ibv_qp* const peer = make_qp(pd);
    ibv_qp* const ended = make_qp(pd);
    connect(ended, peer->qp_num);
    EXPECT_EQ(ibv_destroy_qp(ended), 0);
    ibv_qp* const reset = make_qp(pd);
    connect(reset, peer->qp_num);
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_RESET;
    EXPECT_EQ(ibv_modify_qp(reset, &to, IBV_QP_STATE), 0);
    connect(peer, reset->qp_num);
    expect_failed(peer);
    EXPECT_EQ(state_of(reset), IBV_QPS_RESET);
    EXPECT_EQ(ibv_destroy_qp(reset), 0);
    EXPECT_EQ(ibv_destroy_qp(peer), 0);
}

TEST_F(PlannedFailuresTest, APortThatFailsIsDownUntilItWorksAgain) {
    port::Faults faults;
    faults.port = {milliseconds(1), milliseconds(20)};
    plan(faults);
    EXPECT_EQ(next_event().event_type, IBV_EVENT_PORT_ERR);
    EXPECT_EQ(next_event().event_type, IBV_EVENT_PORT_ACTIVE);
    EXPECT_EQ(port_state(), IBV_PORT_ACTIVE);
    with_lock([] {});
    faults.port = {{}, port::Outage::kNever};
    plan({});
    plan(faults);
    EXPECT_EQ(next_event().event_type, IBV_EVENT_PORT_ERR);
    EXPECT_EQ(port_state(), IBV_PORT_DOWN);
}

}  // namespace
}  // namespace cairn::ibverbs
