// Completion queues that are changed, and slots of send queues that are freed.
#include <poll.h>

#include "tests/unit/ibverbs/verbs_rig.hpp"

namespace cairn::ibverbs {
namespace {

using QueuesTest = VerbsTest;

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

// Adapters count 0 as 1, and programs that connect with a zeroed structure still post READs.
TEST_F(QueuesTest, NoReadsAtATimeMeansOne) {
    std::array<std::uint64_t, 2> words{1, 2};
    ibv_mr* const region = ibv_reg_mr(pd, words.data(), sizeof(words), kAllAccess);
    ibv_qp* const qp = make_qp(pd);
    ASSERT_TRUE(region != nullptr && qp != nullptr);
    connect(qp, qp->qp_num, 0);
    const ibv_sge to{reinterpret_cast<std::uint64_t>(&words[0]), 8, region->lkey};
    const auto from = reinterpret_cast<std::uint64_t>(&words[1]);
    EXPECT_EQ(do_work(qp, IBV_WR_RDMA_READ, to, from, region->rkey).status, IBV_WC_SUCCESS);
    EXPECT_EQ(words[0], 2U);
    ibv_qp_attr is{};
    ibv_qp_init_attr was{};
    ASSERT_EQ(ibv_query_qp(qp, &is, 0, &was), 0);
    EXPECT_EQ(is.max_rd_atomic, 1);
    EXPECT_EQ(is.max_dest_rd_atomic, 1);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_dereg_mr(region), 0);
}

// A program that posts until its send queue is full, and then polls.
class SendSlots : public QueuesTest {
protected:
    static constexpr int kSlots = 16;

    void SetUp() override {
        QueuesTest::SetUp();
        channel_ = ibv_create_comp_channel(context);
        sends_ = ibv_create_cq(context, kSlots, nullptr, channel_, 0);
        region_ = ibv_reg_mr(pd, &word_, sizeof(word_), kAllAccess);
        ibv_qp_init_attr wanted{};
        wanted.send_cq = sends_;
        wanted.recv_cq = cq;
        wanted.cap = {kSlots, 1, 1, 1, 0};
        wanted.qp_type = IBV_QPT_RC;
        qp_ = ibv_create_qp(pd, &wanted);
        peer_ = make_qp(pd);
        ASSERT_TRUE(qp_ != nullptr && peer_ != nullptr && region_ != nullptr);
        connect_both(qp_, peer_);
    }
    void TearDown() override {
        EXPECT_EQ(ibv_destroy_qp(qp_), 0);
        EXPECT_EQ(ibv_destroy_qp(peer_), 0);
        EXPECT_EQ(ibv_dereg_mr(region_), 0);
        EXPECT_EQ(ibv_destroy_cq(sends_), 0);
        EXPECT_EQ(ibv_destroy_comp_channel(channel_), 0);
        QueuesTest::TearDown();
    }
    // Posts until the queue is full, and asks for a completion of the last request only. Returns how many it posted.
    int fill(bool all_signalled) {
        for (int posted = 0;; ++posted) {
            ibv_sge piece{reinterpret_cast<std::uint64_t>(&word_), sizeof(word_), region_->lkey};
            ibv_send_wr request{};
            request.sg_list = &piece;
            request.num_sge = 1;
            request.opcode = IBV_WR_RDMA_WRITE;
            request.send_flags = all_signalled || posted == kSlots - 1 ? IBV_SEND_SIGNALED : 0;
            request.wr.rdma = {reinterpret_cast<std::uint64_t>(&word_), region_->rkey};
            ibv_send_wr* refused = nullptr;
            const int reason = ibv_post_send(qp_, &request, &refused);
            if (reason != 0) {
                EXPECT_EQ(reason, ENOMEM);
                return posted;
            }
        }
    }
    // Waits until a completion is there, and does not poll it.
    void await_completion() const {
        pollfd readable{channel_->fd, POLLIN, 0};
        ASSERT_EQ(::poll(&readable, 1, 20'000), 1);
        ibv_cq* fired = nullptr;
        void* of = nullptr;
        ASSERT_EQ(ibv_get_cq_event(channel_, &fired, &of), 0);
        ibv_ack_cq_events(fired, 1);
    }

    std::uint64_t word_ = 0;
    ibv_comp_channel* channel_ = nullptr;
    ibv_cq* sends_ = nullptr;
    ibv_mr* region_ = nullptr;
    ibv_qp* qp_ = nullptr;
    ibv_qp* peer_ = nullptr;
};

TEST_F(SendSlots, AreTakenUntilACompletionIsPolled) {
    ASSERT_EQ(ibv_req_notify_cq(sends_, 0), 0);
    ASSERT_EQ(fill(false), kSlots);
    ASSERT_NO_FATAL_FAILURE(await_completion());
    EXPECT_EQ(fill(false), 0);  // all are executed, and no completion was polled
    ibv_wc completion{};
    ASSERT_EQ(ibv_poll_cq(sends_, 1, &completion), 1);
    EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
    EXPECT_EQ(fill(false), kSlots);  // requests before the signalled one were freed with it
}

TEST_F(SendSlots, ComeBackOneByOneSoThatNoCompletionIsLost) {
    int posted = fill(true);
    ASSERT_EQ(posted, kSlots);
    for (int polled = 0; polled < 20 * kSlots; ++polled) {
        ibv_wc completion{};
        int found = 0;
        while (found == 0) {
            found = ibv_poll_cq(sends_, 1, &completion);
        }
        ASSERT_EQ(found, 1);  // else the completion queue is overrun
        ASSERT_EQ(completion.status, IBV_WC_SUCCESS);
        ASSERT_EQ(fill(true), 1);
    }
}

// A program may arm before it polls, as ibv_rc_pingpong does, or sleep in a poll of its own, as UCX does. On a busy
// machine some completions come between arming and polling. Their event does not result from arming, and that round
// proves nothing.
TEST_F(SendSlots, AnEventOfArmingTellsOfWhatIsThereAndOfNothingElse) {
    pollfd readable{channel_->fd, POLLIN, 0};
    std::array<ibv_wc, kSlots> completions;
    const auto poll_all = [&] {
        for (int polled = 0; polled < kSlots;) {
            polled += ibv_poll_cq(sends_, kSlots, completions.data());
        }
    };
    bool is_withdrawn = false;
    for (int round = 0; round < 50 && !is_withdrawn; ++round) {
        ASSERT_EQ(fill(true), kSlots);
        ASSERT_EQ(do_work(peer_, IBV_WR_RDMA_WRITE, {reinterpret_cast<std::uint64_t>(&word_), 8, region_->lkey},
                          reinterpret_cast<std::uint64_t>(&word_), region_->rkey)
                      .status,
                  IBV_WC_SUCCESS);
        ASSERT_EQ(ibv_req_notify_cq(sends_, 0), 0);
        poll_all();
        is_withdrawn = ::poll(&readable, 1, 0) == 0;
        if (!is_withdrawn) {
            ASSERT_NO_FATAL_FAILURE(await_completion());
        }
    }
    ASSERT_TRUE(is_withdrawn);
    ASSERT_EQ(fill(true), kSlots);
    ASSERT_NO_FATAL_FAILURE(await_completion());  // it is armed
    poll_all();
    EXPECT_EQ(ibv_poll_cq(sends_, kSlots, completions.data()), 0);
    ASSERT_EQ(ibv_req_notify_cq(sends_, 0), 0);
    EXPECT_EQ(::poll(&readable, 1, 0), 0);
}

TEST_F(SendSlots, AreFreeAfterAReset) {
    ASSERT_EQ(fill(true), kSlots);
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_RESET;
    ASSERT_EQ(ibv_modify_qp(qp_, &to, IBV_QP_STATE), 0);
    connect(qp_, peer_->qp_num);
    EXPECT_EQ(fill(true), kSlots);
}

TEST_F(SendSlots, OfDatagramsAreFreeAfterAReset) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = sends_;
    wanted.cap = {2, 1, 1, 1, 0};
    wanted.qp_type = IBV_QPT_UD;
    wanted.sq_sig_all = 1;
    ibv_qp* const qp = ibv_create_qp(pd, &wanted);
    ASSERT_NE(qp, nullptr);
    ibv_ah_attr way{};
    way.is_global = 1;
    way.port_num = 1;
    way.grh.sgid_index = 1;
    ASSERT_EQ(ibv_query_gid(context, 1, 1, &way.grh.dgid), 0);
    ibv_ah* const ah = ibv_create_ah(pd, &way);
    ASSERT_NE(ah, nullptr);
    for (int round = 0; round < 3; ++round) {
        ibv_qp_attr to{};
        to.port_num = 1;
        to.qp_state = IBV_QPS_INIT;
        ASSERT_EQ(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
        to.qp_state = IBV_QPS_RTR;
        ASSERT_EQ(ibv_modify_qp(qp, &to, IBV_QP_STATE), 0);
        to.qp_state = IBV_QPS_RTS;
        ASSERT_EQ(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
        for (int i = 0; i < 3; ++i) {
            ibv_send_wr request{};
            request.opcode = IBV_WR_SEND;
            request.wr.ud = {ah, 1234, 0};
            ibv_send_wr* refused = nullptr;
            ASSERT_EQ(ibv_post_send(qp, &request, &refused), i < 2 ? 0 : ENOMEM);
        }
        to.qp_state = IBV_QPS_RESET;
        ASSERT_EQ(ibv_modify_qp(qp, &to, IBV_QP_STATE), 0);
    }
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
}

TEST_F(SendSlots, ABindingHasOneToo) {
    ASSERT_EQ(ibv_req_notify_cq(sends_, 0), 0);
    ASSERT_EQ(fill(false), kSlots);
    ASSERT_NO_FATAL_FAILURE(await_completion());
    ibv_mw* const window = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
    ASSERT_NE(window, nullptr);
    ibv_mw_bind wanted{};
    wanted.bind_info = {region_, reinterpret_cast<std::uint64_t>(&word_), sizeof(word_), IBV_ACCESS_REMOTE_WRITE};
    EXPECT_EQ(ibv_bind_mw(qp_, window, &wanted), ENOMEM);
    ibv_wc completion{};
    ASSERT_EQ(ibv_poll_cq(sends_, 1, &completion), 1);
    EXPECT_EQ(ibv_bind_mw(qp_, window, &wanted), 0);
    EXPECT_EQ(ibv_dealloc_mw(window), 0);
}

}  // namespace
}  // namespace cairn::ibverbs
