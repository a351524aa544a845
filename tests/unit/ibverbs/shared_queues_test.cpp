// Shared receive queues that are changed, and their limits.
#include <poll.h>

#include "tests/unit/ibverbs/verbs_rig.hpp"

namespace cairn::ibverbs {
namespace {

class SharedQueuesTest : public VerbsTest {
protected:
    ibv_srq* make_srq(const ibv_srq_attr& wanted) const {
        ibv_srq_init_attr init{nullptr, wanted};
        return ibv_create_srq(pd, &init);
    }
    static int post(ibv_srq* srq) {
        ibv_recv_wr request{};
        ibv_recv_wr* refused = nullptr;
        return ibv_post_srq_recv(srq, &request, &refused);
    }
};

TEST_F(SharedQueuesTest, ASharedReceiveQueueIsResized) {
    ibv_srq* const srq = make_srq({2, 1, 0});
    ASSERT_NE(srq, nullptr);
    EXPECT_EQ(post(srq), 0);
    EXPECT_EQ(post(srq), 0);
    EXPECT_EQ(post(srq), ENOMEM);
    ibv_srq_attr limit{0, 0, 1};
    EXPECT_EQ(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
    ibv_srq_attr wanted{4, 0, 0};
    EXPECT_EQ(ibv_modify_srq(srq, &wanted, IBV_SRQ_MAX_WR), 0);
    EXPECT_EQ(post(srq), 0);
    ibv_srq_attr now{};
    ASSERT_EQ(ibv_query_srq(srq, &now), 0);
    EXPECT_EQ(now.max_wr, 4U);
    EXPECT_EQ(now.srq_limit, 1U);
    wanted = {2, 0, 0};  // it holds three
    EXPECT_EQ(ibv_modify_srq(srq, &wanted, IBV_SRQ_MAX_WR), EINVAL);
    wanted = {8, 0, 9};
    EXPECT_EQ(ibv_modify_srq(srq, &wanted, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
    EXPECT_EQ(ibv_modify_srq(srq, &wanted, 1 << 4), EINVAL);
    ASSERT_EQ(ibv_query_srq(srq, &now), 0);
    EXPECT_EQ(now.max_wr, 4U);
    wanted = {8, 0, 3};
    EXPECT_EQ(ibv_modify_srq(srq, &wanted, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
    ASSERT_EQ(ibv_query_srq(srq, &now), 0);
    EXPECT_EQ(now.max_wr, 8U);
    EXPECT_EQ(now.srq_limit, 3U);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

// A program that posts at an event may arm an empty queue: no later event would come.
TEST_F(SharedQueuesTest, ALimitAboveWhatIsPostedIsAnEventAtOnce) {
    ibv_srq* const srq = make_srq({8, 1, 0});
    ASSERT_NE(srq, nullptr);
    EXPECT_EQ(post(srq), 0);
    pollfd readable{context->async_fd, POLLIN, 0};
    ibv_srq_attr limit{0, 0, 1};
    EXPECT_EQ(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
    EXPECT_EQ(::poll(&readable, 1, 0), 0);
    limit.srq_limit = 2;
    EXPECT_EQ(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
    ASSERT_EQ(::poll(&readable, 1, 0), 1);
    ibv_async_event event{};
    ASSERT_EQ(ibv_get_async_event(context, &event), 0);
    EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
    EXPECT_EQ(event.element.srq, srq);
    ibv_ack_async_event(&event);
    ASSERT_EQ(ibv_query_srq(srq, &limit), 0);
    EXPECT_EQ(limit.srq_limit, 0U);  // one event for each time that it is set
    EXPECT_EQ(::poll(&readable, 1, 0), 0);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

// Programs use one structure for all their queue pairs.
TEST_F(SharedQueuesTest, ReceiveRequestsOfAQueuePairMeanNothingBesideASharedQueue) {
    ibv_srq* const srq = make_srq({8, 1, 0});
    ASSERT_NE(srq, nullptr);
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = cq;
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap = {1, 1U << 30U, 1, 1U << 30U, 0};
    EXPECT_EQ(ibv_create_qp(pd, &wanted), nullptr);
    wanted.srq = srq;
    ibv_qp* const qp = ibv_create_qp(pd, &wanted);
    ASSERT_NE(qp, nullptr);
    EXPECT_EQ(wanted.cap.max_recv_wr, 0U);
    EXPECT_EQ(wanted.cap.max_recv_sge, 0U);
    EXPECT_EQ(wanted.cap.max_send_sge, 1U);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

// Programs leave the field as they find it. A new queue has no limit until one is set.
TEST_F(SharedQueuesTest, ALimitMeansNothingToAQueueThatIsMade) {
    ibv_srq* const srq = make_srq({2, 1, 0xcccc});
    ASSERT_NE(srq, nullptr);
    ibv_srq_attr now{};
    ASSERT_EQ(ibv_query_srq(srq, &now), 0);
    EXPECT_EQ(now.srq_limit, 0U);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(SharedQueuesTest, ALimitIsWithinTheQueue) {
    ibv_srq* const srq = make_srq({8, 1, 0});
    ASSERT_NE(srq, nullptr);
    ibv_srq_attr wanted{0, 0, 9};
    EXPECT_EQ(ibv_modify_srq(srq, &wanted, IBV_SRQ_LIMIT), EINVAL);
    wanted = {3, 0, 4};
    EXPECT_EQ(ibv_modify_srq(srq, &wanted, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
    wanted.srq_limit = 3;
    EXPECT_EQ(ibv_modify_srq(srq, &wanted, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

}  // namespace
}  // namespace cairn::ibverbs
