// Memory windows, as programs bind them.
#include "tests/unit/ibverbs/verbs_rig.hpp"

namespace cairn::ibverbs {
namespace {

class WindowTest : public VerbsTest {
protected:
    void SetUp() override {
        VerbsTest::SetUp();
        qp_ = make_qp(pd);
        peer_ = make_qp(pd);
        region_ = ibv_reg_mr(pd, bytes_.data(), bytes_.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
        window_ = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
        ASSERT_TRUE(qp_ != nullptr && peer_ != nullptr && region_ != nullptr && window_ != nullptr);
        connect_both(qp_, peer_);
    }
    void TearDown() override {
        EXPECT_EQ(ibv_dealloc_mw(window_), 0);
        EXPECT_EQ(ibv_destroy_qp(qp_), 0);
        EXPECT_EQ(ibv_destroy_qp(peer_), 0);
        EXPECT_EQ(ibv_dereg_mr(region_), 0);
        VerbsTest::TearDown();
    }
    ibv_wc_status bind(unsigned rights) {
        ibv_mw_bind wanted{};
        wanted.send_flags = IBV_SEND_SIGNALED;
        wanted.bind_info = {region_, reinterpret_cast<std::uint64_t>(bytes_.data()), bytes_.size(), rights};
        EXPECT_EQ(ibv_bind_mw(qp_, window_, &wanted), 0);
        return next_completion().status;
    }
    // Lets the peer work on the first eight bytes through the window, from or to the last eight.
    ibv_wc_status work(ibv_wr_opcode opcode) {
        const ibv_sge piece{reinterpret_cast<std::uint64_t>(&bytes_[56]), 8, region_->lkey};
        return do_work(peer_, opcode, piece, reinterpret_cast<std::uint64_t>(bytes_.data()), window_->rkey).status;
    }

    ibv_qp* qp_ = nullptr;
    ibv_qp* peer_ = nullptr;
    ibv_mr* region_ = nullptr;
    ibv_mw* window_ = nullptr;
    std::array<std::uint8_t, 64> bytes_{};
};

// Programs written for adapters bind windows with the flags of their regions.
TEST_F(WindowTest, LocalWritingIsAcceptedAndGivesNothing) {
    bytes_[56] = 7;
    ASSERT_EQ(bind(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE), IBV_WC_SUCCESS);
    EXPECT_EQ(work(IBV_WR_RDMA_WRITE), IBV_WC_SUCCESS);
    EXPECT_EQ(bytes_[0], 7);
    ASSERT_EQ(bind(IBV_ACCESS_LOCAL_WRITE), IBV_WC_SUCCESS);
    EXPECT_EQ(work(IBV_WR_RDMA_WRITE), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowTest, WindowsAreNotBoundToWindows) {
    EXPECT_EQ(bind(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND), IBV_WC_MW_BIND_ERR);
}

}  // namespace
}  // namespace cairn::ibverbs
