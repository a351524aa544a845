// XRC: domains of files, and targets that several queue pairs stand for.
#include <fcntl.h>
#include <sys/mman.h>

#include <set>

#include "tests/unit/ibverbs/verbs_rig.hpp"

namespace cairn::ibverbs {
namespace {

class XrcTest : public VerbsTest {
protected:
    ibv_xrcd* open_domain(int fd, int flags) const {
        ibv_xrcd_init_attr wanted{};
        wanted.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
        wanted.fd = fd;
        wanted.oflags = flags;
        return ibv_open_xrcd(context, &wanted);
    }
    ibv_qp* make_target(ibv_xrcd* domain) const {
        ibv_qp_init_attr_ex wanted{};
        wanted.qp_type = IBV_QPT_XRC_RECV;
        wanted.comp_mask = IBV_QP_INIT_ATTR_XRCD;
        wanted.xrcd = domain;
        return ibv_create_qp_ex(context, &wanted);
    }
    ibv_qp* make_sender() const {
        ibv_qp_init_attr_ex wanted{};
        wanted.qp_type = IBV_QPT_XRC_SEND;
        wanted.comp_mask = IBV_QP_INIT_ATTR_PD;
        wanted.pd = pd;
        wanted.send_cq = cq;
        wanted.cap = {8, 0, 1, 0, 0};
        return ibv_create_qp_ex(context, &wanted);
    }
    ibv_srq* make_srq(ibv_xrcd* domain) const {
        ibv_srq_init_attr_ex wanted{};
        wanted.attr = {8, 1, 0};
        wanted.comp_mask =
            IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
        wanted.srq_type = IBV_SRQT_XRC;
        wanted.pd = pd;
        wanted.xrcd = domain;
        wanted.cq = cq;
        return ibv_create_srq_ex(context, &wanted);
    }
    ibv_qp* open_target(ibv_xrcd* domain, std::uint32_t number, ibv_qp_type type = IBV_QPT_XRC_RECV) {
        ibv_qp_open_attr wanted{};
        wanted.comp_mask =
            IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE | IBV_QP_OPEN_ATTR_CONTEXT;
        wanted.qp_num = number;
        wanted.xrcd = domain;
        wanted.qp_context = this;
        wanted.qp_type = type;
        return ibv_open_qp(context, &wanted);
    }
};

TEST_F(XrcTest, OneFileIsOneDomain) {
    const int file = memfd_create("xrcd", MFD_CLOEXEC);
    errno = 0;
    EXPECT_EQ(open_domain(file, 0), nullptr);
    EXPECT_EQ(errno, EAGAIN);
    ibv_xrcd* const one = open_domain(file, O_CREAT);
    ASSERT_NE(one, nullptr);
    errno = 0;
    EXPECT_EQ(open_domain(file, O_CREAT | O_EXCL), nullptr);
    EXPECT_EQ(errno, EINVAL);
    ibv_xrcd* const same = open_domain(file, 0);
    ibv_xrcd* const other = open_domain(-1, O_CREAT);
    ASSERT_TRUE(same != nullptr && other != nullptr);
    ibv_qp* const target = make_target(one);
    ASSERT_NE(target, nullptr);
    EXPECT_EQ(open_target(other, target->qp_num), nullptr);
    ibv_qp* const again = open_target(same, target->qp_num);
    ASSERT_NE(again, nullptr);
    EXPECT_EQ(ibv_close_xrcd(same), EBUSY);
    EXPECT_EQ(ibv_destroy_qp(again), 0);
    EXPECT_EQ(ibv_destroy_qp(target), 0);
    for (ibv_xrcd* const each : {one, same, other}) {
        EXPECT_EQ(ibv_close_xrcd(each), 0);
    }
    errno = 0;
    EXPECT_EQ(open_domain(file, 0), nullptr);
    EXPECT_EQ(errno, EAGAIN);
    close(file);
    errno = 0;
    EXPECT_EQ(open_domain(file, O_CREAT), nullptr);
    EXPECT_EQ(errno, EBADF);
}

TEST_F(XrcTest, ATargetLivesAsLongAsAnyoneHasIt) {
    ibv_xrcd* const domain = open_domain(-1, O_CREAT);
    ASSERT_NE(domain, nullptr);
    ibv_qp* const made = make_target(domain);
    ibv_qp* const sender = make_sender();
    ibv_srq* const srq = make_srq(domain);
    ASSERT_TRUE(made != nullptr && sender != nullptr && srq != nullptr);
    ibv_qp* const opened = open_target(domain, made->qp_num);
    ASSERT_NE(opened, nullptr);
    EXPECT_EQ(opened->qp_context, this);
    connect(opened, sender->qp_num);
    connect(sender, made->qp_num);
    EXPECT_EQ(made->state, IBV_QPS_RTR);
    EXPECT_EQ(ibv_destroy_qp(made), 0);

    std::vector<std::uint8_t> bytes(64, 7);
    std::vector<std::uint8_t> target(64, 0);
    ibv_mr* const from = ibv_reg_mr(pd, bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE);
    ibv_mr* const to = ibv_reg_mr(pd, target.data(), target.size(), IBV_ACCESS_LOCAL_WRITE);
    ibv_sge into = piece_of(target, to->lkey);
    ibv_recv_wr receive{1, nullptr, &into, 1};
    ibv_recv_wr* bad_receive = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(srq, &receive, &bad_receive), 0);
    std::uint32_t srqn = 0;
    ASSERT_EQ(ibv_get_srq_num(srq, &srqn), 0);
    EXPECT_EQ(do_work(sender, IBV_WR_SEND, piece_of(bytes, from->lkey), 0, 0, srqn).status, IBV_WC_SUCCESS);
    EXPECT_EQ(next_completion().status, IBV_WC_SUCCESS);
    EXPECT_EQ(target, bytes);

    const std::uint32_t number = opened->qp_num;
    EXPECT_EQ(ibv_destroy_qp(opened), 0);
    errno = 0;
    EXPECT_EQ(open_target(domain, number), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(ibv_destroy_qp(sender), 0);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
    EXPECT_EQ(ibv_dereg_mr(from), 0);
    EXPECT_EQ(ibv_dereg_mr(to), 0);
    EXPECT_EQ(ibv_close_xrcd(domain), 0);
}

TEST_F(XrcTest, AllWhoHaveATargetHearOfIt) {
    ibv_xrcd* const domain = open_domain(-1, O_CREAT);
    ibv_qp* const made = make_target(domain);
    ibv_qp* const sender = make_sender();
    ASSERT_TRUE(made != nullptr && sender != nullptr);
    ibv_qp* const opened = open_target(domain, made->qp_num);
    ASSERT_NE(opened, nullptr);
    connect(made, sender->qp_num);
    connect(sender, made->qp_num);
    std::vector<std::uint8_t> bytes(64, 7);
    ibv_mr* const from = ibv_reg_mr(pd, bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE);
    ibv_srq* const srq = make_srq(domain);
    std::uint32_t srqn = 0;
    ASSERT_EQ(ibv_get_srq_num(srq, &srqn), 0);
    EXPECT_EQ(do_work(sender, IBV_WR_RDMA_WRITE, piece_of(bytes, from->lkey), 0, 12345, srqn).status,
              IBV_WC_REM_ACCESS_ERR);
    std::set<ibv_qp*> told;
    while (told.size() < 2) {
        ibv_async_event event{};
        ASSERT_EQ(ibv_get_async_event(context, &event), 0);
        if (event.event_type == IBV_EVENT_QP_ACCESS_ERR) {
            told.insert(event.element.qp);
        }
        ibv_ack_async_event(&event);
    }
    EXPECT_EQ(told, (std::set<ibv_qp*>{made, opened}));
    EXPECT_EQ(ibv_destroy_qp(made), 0);
    EXPECT_EQ(ibv_destroy_qp(opened), 0);
    EXPECT_EQ(ibv_destroy_qp(sender), 0);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
    EXPECT_EQ(ibv_dereg_mr(from), 0);
    EXPECT_EQ(ibv_close_xrcd(domain), 0);
}

TEST_F(XrcTest, NonsenseIsRefused) {
    ibv_xrcd* const domain = open_domain(-1, O_CREAT);
    ibv_qp* const made = make_target(domain);
    ASSERT_NE(made, nullptr);
    errno = 0;
    EXPECT_EQ(open_target(domain, made->qp_num, IBV_QPT_RC), nullptr);
    EXPECT_EQ(errno, EINVAL);
    errno = 0;
    EXPECT_EQ(open_target(nullptr, made->qp_num), nullptr);
    EXPECT_EQ(errno, EINVAL);
    ibv_qp_open_attr empty{};
    errno = 0;
    EXPECT_EQ(ibv_open_qp(context, &empty), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(ibv_destroy_qp(made), 0);
    EXPECT_EQ(ibv_close_xrcd(domain), 0);
}

}  // namespace
}  // namespace cairn::ibverbs
