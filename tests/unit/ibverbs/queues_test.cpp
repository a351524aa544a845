// Completion and shared receive queues that change.
#include "tests/unit/ibverbs/verbs_rig.hpp"

namespace cairn::ibverbs {
namespace {

class QueuesTest : public VerbsTest {
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

TEST_F(QueuesTest, ModerationIsAcceptedAndNothingElseIs) {
    ibv_modify_cq_attr wanted{};
    wanted.attr_mask = IBV_CQ_ATTR_MODERATE;
    wanted.moderate = {16, 100};
    EXPECT_EQ(ibv_modify_cq(cq, &wanted), 0);
    wanted.attr_mask = 0;
    EXPECT_EQ(ibv_modify_cq(cq, &wanted), EINVAL);
    wanted.attr_mask = IBV_CQ_ATTR_MODERATE | IBV_CQ_ATTR_RESERVED;
    EXPECT_EQ(ibv_modify_cq(cq, &wanted), EINVAL);
}

TEST_F(QueuesTest, ACompletionQueueKeepsWhatItHoldsWhenItIsResized) {
    ibv_qp* const qp = make_qp(pd);
    ASSERT_NE(qp, nullptr);
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_INIT;
    to.port_num = 1;
    ASSERT_EQ(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
    for (std::uint64_t i = 0; i < 3; ++i) {
        ibv_recv_wr request{};
        request.wr_id = i;
        ibv_recv_wr* refused = nullptr;
        ASSERT_EQ(ibv_post_recv(qp, &request, &refused), 0);
    }
    to.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(ibv_modify_qp(qp, &to, IBV_QP_STATE), 0);
    EXPECT_EQ(ibv_resize_cq(cq, 2), EINVAL);
    EXPECT_EQ(ibv_resize_cq(cq, 0), EINVAL);
    EXPECT_EQ(ibv_resize_cq(cq, 1 << 30), EINVAL);
    EXPECT_EQ(cq->cqe, 64);
    EXPECT_EQ(ibv_resize_cq(cq, 1000), 0);
    EXPECT_EQ(cq->cqe, 1000);
    for (std::uint64_t i = 0; i < 3; ++i) {
        const ibv_wc flushed = next_completion();
        EXPECT_EQ(flushed.wr_id, i);
        EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
    }
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(QueuesTest, ASharedReceiveQueueIsResized) {
    ibv_srq* const srq = make_srq({2, 1, 1});
    ASSERT_NE(srq, nullptr);
    EXPECT_EQ(post(srq), 0);
    EXPECT_EQ(post(srq), 0);
    EXPECT_EQ(post(srq), ENOMEM);
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
    wanted = {8, 0, 7};
    EXPECT_EQ(ibv_modify_srq(srq, &wanted, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
    ASSERT_EQ(ibv_query_srq(srq, &now), 0);
    EXPECT_EQ(now.srq_limit, 7U);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(QueuesTest, ALimitIsWithinTheQueue) {
    errno = 0;
    EXPECT_EQ(make_srq({2, 1, 3}), nullptr);
    EXPECT_EQ(errno, EINVAL);
    ibv_srq* const srq = make_srq({8, 1, 4});
    ASSERT_NE(srq, nullptr);
    ibv_srq_attr wanted{3, 0, 0};
    EXPECT_EQ(ibv_modify_srq(srq, &wanted, IBV_SRQ_MAX_WR), EINVAL);  // the limit would lie beyond it
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

}  // namespace
}  // namespace cairn::ibverbs
