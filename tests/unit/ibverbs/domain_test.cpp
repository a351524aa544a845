// Thread domains, and parent domains over protection domains.
#include "tests/unit/ibverbs/verbs_rig.hpp"

namespace cairn::ibverbs {
namespace {

class DomainTest : public VerbsTest {
protected:
    ibv_pd* make_parent(ibv_td* td, std::uint32_t mask = 0) const {
        ibv_parent_domain_init_attr wanted{};
        wanted.pd = pd;
        wanted.td = td;
        wanted.comp_mask = mask;
        return ibv_alloc_parent_domain(context, &wanted);
    }
};

TEST_F(DomainTest, AParentDomainKeepsWhatItIsMadeOf) {
    ibv_td_init_attr of_td{};
    ibv_td* const td = ibv_alloc_td(context, &of_td);
    ASSERT_NE(td, nullptr);
    ibv_pd* const parent = make_parent(td, IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT);
    ASSERT_NE(parent, nullptr);
    EXPECT_NE(parent, pd);
    EXPECT_EQ(ibv_dealloc_td(td), EBUSY);
    EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
    EXPECT_EQ(ibv_dealloc_pd(parent), 0);
    EXPECT_EQ(ibv_dealloc_td(td), 0);
}

TEST_F(DomainTest, WhatIsMadeWithAParentDomainBelongsToItsDomain) {
    ibv_pd* const parent = make_parent(nullptr);
    ASSERT_NE(parent, nullptr);
    std::vector<std::uint8_t> bytes(64, 7);
    std::vector<std::uint8_t> target(64, 0);
    ibv_mr* const from = ibv_reg_mr(parent, bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE);
    ibv_mr* const to = ibv_reg_mr(pd, target.data(), target.size(), kAllAccess);
    ibv_qp* const qp = make_qp(parent);
    ibv_qp* const peer = make_qp(pd);
    ASSERT_TRUE(from != nullptr && to != nullptr && qp != nullptr && peer != nullptr);
    EXPECT_EQ(qp->pd, parent);
    connect_both(qp, peer);
    const ibv_wc done = do_work(qp, IBV_WR_RDMA_WRITE, piece_of(bytes, from->lkey),
                                reinterpret_cast<std::uint64_t>(to->addr), to->rkey);
    EXPECT_EQ(done.status, IBV_WC_SUCCESS);
    EXPECT_EQ(target, bytes);
    EXPECT_EQ(ibv_dealloc_pd(parent), EBUSY);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_destroy_qp(peer), 0);
    EXPECT_EQ(ibv_dealloc_pd(parent), EBUSY);
    EXPECT_EQ(ibv_dereg_mr(from), 0);
    EXPECT_EQ(ibv_dereg_mr(to), 0);
    EXPECT_EQ(ibv_dealloc_pd(parent), 0);
}

TEST_F(DomainTest, ACompletionQueueMayHaveAParentDomainAndNoOther) {
    ibv_cq_init_attr_ex wanted{};
    wanted.cqe = 4;
    wanted.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
    wanted.parent_domain = pd;
    errno = 0;
    EXPECT_EQ(ibv_create_cq_ex(context, &wanted), nullptr);
    EXPECT_EQ(errno, EINVAL);
    ibv_pd* const parent = make_parent(nullptr);
    wanted.parent_domain = parent;
    ibv_cq_ex* const made = ibv_create_cq_ex(context, &wanted);
    ASSERT_NE(made, nullptr);
    EXPECT_EQ(ibv_dealloc_pd(parent), EBUSY);
    EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(made)), 0);
    EXPECT_EQ(ibv_dealloc_pd(parent), 0);
}

TEST_F(DomainTest, NonsenseIsRefused) {
    ibv_td_init_attr of_td{};
    of_td.comp_mask = 1;
    errno = 0;
    EXPECT_EQ(ibv_alloc_td(context, &of_td), nullptr);
    EXPECT_EQ(errno, EINVAL);
    ibv_parent_domain_init_attr of_parent{};
    errno = 0;
    EXPECT_EQ(ibv_alloc_parent_domain(context, &of_parent), nullptr);
    EXPECT_EQ(errno, EINVAL);
    errno = 0;
    EXPECT_EQ(make_parent(nullptr, 1U << 7U), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace cairn::ibverbs
