// Requests that a program builds one by one and posts together (ibv_wr_start() to ibv_wr_complete()).
#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "tests/unit/ibverbs/verbs_rig.hpp"

namespace cairn::ibverbs {
namespace {

class PostingTest : public VerbsTest {
protected:
    static constexpr std::uint32_t kSlots = 8;

    void SetUp() override {
        VerbsTest::SetUp();
        bytes_.resize(64);
        region_ = ibv_reg_mr(pd, bytes_.data(), bytes_.size(), kAllAccess);
        ASSERT_NE(region_, nullptr);
    }
    void TearDown() override {
        EXPECT_EQ(ibv_dereg_mr(region_), 0);
        VerbsTest::TearDown();
    }
    ibv_qp* make_extended(ibv_qp_type type, std::uint64_t operations) {
        ibv_qp_init_attr_ex wanted{};
        wanted.send_cq = wanted.recv_cq = cq;
        wanted.cap = {kSlots, 1, 1, 1, 0};
        wanted.qp_type = type;
        wanted.sq_sig_all = 1;
        wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        wanted.pd = pd;
        wanted.send_ops_flags = operations;
        return ibv_create_qp_ex(context, &wanted);
    }
    // Writes the first eight bytes to the place of the others, from this many pieces.
    void add_write(ibv_qp_ex* to, std::size_t pieces) {
        ibv_wr_rdma_write(to, region_->rkey, reinterpret_cast<std::uint64_t>(&bytes_[8]));
        const std::array<ibv_sge, 2> of{{{reinterpret_cast<std::uint64_t>(bytes_.data()), 8, region_->lkey}, {}}};
        ibv_wr_set_sge_list(to, pieces, of.data());
    }
    void expect_that_nothing_was_posted() const {
        ibv_wc none{};
        for (int i = 0; i < 1000; ++i) {
            ASSERT_EQ(ibv_poll_cq(cq, 1, &none), 0);
        }
    }

    std::vector<std::uint8_t> bytes_;
    ibv_mr* region_ = nullptr;
};

TEST_F(PostingTest, ABatchIsPostedAsAWholeOrNotAtAll) {
    ibv_qp* const qp = make_extended(IBV_QPT_RC, IBV_QP_EX_WITH_RDMA_WRITE);
    ibv_qp* const peer = make_qp(pd);
    ASSERT_TRUE(qp != nullptr && peer != nullptr);
    connect_both(qp, peer);
    ibv_qp_ex* const extended = ibv_qp_to_qp_ex(qp);
    for (const std::size_t bad : {1U, 2U}) {
        bytes_[0] = 7;
        ibv_wr_start(extended);
        for (std::size_t i = 0; i < 3; ++i) {
            add_write(extended, i == bad ? 2 : 1);  // one piece more than it may have
        }
        EXPECT_EQ(ibv_wr_complete(extended), EINVAL);
        expect_that_nothing_was_posted();
        EXPECT_EQ(bytes_[8], 0);
    }
    ibv_wr_start(extended);
    for (std::size_t i = 0; i < kSlots; ++i) {
        add_write(extended, 1);
    }
    EXPECT_EQ(ibv_wr_complete(extended), 0);
    for (std::size_t i = 0; i < kSlots; ++i) {
        EXPECT_EQ(next_completion().status, IBV_WC_SUCCESS);
    }
    EXPECT_EQ(bytes_[8], 7);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_destroy_qp(peer), 0);
}

TEST_F(PostingTest, AnAtomicWriteNeedsNoInlineData) {
    ibv_qp* const qp = make_extended(IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_WRITE);
    ibv_qp* const peer = make_qp(pd);
    ASSERT_TRUE(qp != nullptr && peer != nullptr);
    connect_both(qp, peer);
    ibv_qp_ex* const extended = ibv_qp_to_qp_ex(qp);
    const std::array<std::uint8_t, 8> word{1, 2, 3, 4, 5, 6, 7, 8};
    ibv_wr_start(extended);
    ibv_wr_atomic_write(extended, region_->rkey, reinterpret_cast<std::uint64_t>(&bytes_[8]), word.data());
    EXPECT_EQ(ibv_wr_complete(extended), 0);
    EXPECT_EQ(next_completion().status, IBV_WC_SUCCESS);
    EXPECT_TRUE(std::equal(word.begin(), word.end(), bytes_.begin() + 8));
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_destroy_qp(peer), 0);
}

TEST_F(PostingTest, ABatchOfDatagramsToo) {
    ibv_qp* const qp = make_extended(IBV_QPT_UD, IBV_QP_EX_WITH_SEND);
    ASSERT_NE(qp, nullptr);
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_INIT;
    to.port_num = 1;
    ASSERT_EQ(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
    to.qp_state = IBV_QPS_RTR;
    ASSERT_EQ(ibv_modify_qp(qp, &to, IBV_QP_STATE), 0);
    to.qp_state = IBV_QPS_RTS;
    ASSERT_EQ(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    ibv_ah_attr way{};
    way.is_global = 1;
    way.port_num = 1;
    way.grh.sgid_index = 1;
    ASSERT_EQ(ibv_query_gid(context, 1, 1, &way.grh.dgid), 0);
    ibv_ah* const ah = ibv_create_ah(pd, &way);
    ASSERT_NE(ah, nullptr);
    ibv_qp_ex* const extended = ibv_qp_to_qp_ex(qp);
    for (const bool whole : {false, true}) {
        ibv_wr_start(extended);
        for (int i = 0; i < 2; ++i) {
            ibv_wr_send(extended);
            ibv_wr_set_sge(extended, region_->lkey, reinterpret_cast<std::uint64_t>(bytes_.data()), 8);
            if (i == 0 || whole) {
                ibv_wr_set_ud_addr(extended, ah, 1234, 0);
            }
        }
        EXPECT_EQ(ibv_wr_complete(extended), whole ? 0 : EINVAL);
        if (!whole) {
            expect_that_nothing_was_posted();
        }
    }
    EXPECT_EQ(next_completion().status, IBV_WC_SUCCESS);
    EXPECT_EQ(next_completion().status, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
}

// The requests are flushed as they are posted.
TEST_F(PostingTest, ABatchOfAQueuePairInErrToo) {
    ibv_qp* const qp = make_extended(IBV_QPT_RC, IBV_QP_EX_WITH_RDMA_WRITE);
    ASSERT_NE(qp, nullptr);
    connect(qp, qp->qp_num);
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(ibv_modify_qp(qp, &to, IBV_QP_STATE), 0);
    ibv_qp_ex* const extended = ibv_qp_to_qp_ex(qp);
    for (const bool whole : {false, true}) {
        ibv_wr_start(extended);
        add_write(extended, 1);
        add_write(extended, whole ? 1 : 2);
        EXPECT_EQ(ibv_wr_complete(extended), whole ? 0 : EINVAL);
        if (!whole) {
            expect_that_nothing_was_posted();
        }
    }
    EXPECT_EQ(next_completion().status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(next_completion().status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

}  // namespace
}  // namespace cairn::ibverbs
