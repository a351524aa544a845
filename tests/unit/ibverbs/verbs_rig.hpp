// A device of the library, as a program sees it through verbs.h, and queue pairs that are connected to each other.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

namespace cairn::ibverbs {

// Returns the first device, at an address that no other test has.
inline ibv_device* test_device() {
    static ibv_device** const devices = [] {
        const int pid = getpid();
        const std::string address =
            "127." + std::to_string(pid / 250 % 250 + 1) + "." + std::to_string(pid % 250) + ".77";
        setenv("CAIRN_DEVICES", ("cairn0=" + address).c_str(), 1);
        setenv("CAIRN_BROKER", "off", 1);
        return ibv_get_device_list(nullptr);
    }();
    return devices[0];
}

// Objects that end with the test.
class VerbsTest : public testing::Test {
protected:
    static constexpr int kAllAccess =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

    void SetUp() override {
        context = ibv_open_device(test_device());
        ASSERT_NE(context, nullptr);
        pd = ibv_alloc_pd(context);
        cq = ibv_create_cq(context, 64, nullptr, nullptr, 0);
        ASSERT_NE(pd, nullptr);
        ASSERT_NE(cq, nullptr);
    }
    void TearDown() override {
        EXPECT_EQ(ibv_destroy_cq(cq), 0);
        EXPECT_EQ(ibv_dealloc_pd(pd), 0);
        EXPECT_EQ(ibv_close_device(context), 0);
    }

    ibv_qp* make_qp(ibv_pd* of, ibv_qp_type type = IBV_QPT_RC) const {
        ibv_qp_init_attr wanted{};
        wanted.send_cq = cq;
        wanted.recv_cq = cq;
        wanted.cap = {16, 16, 4, 4, 64};
        wanted.qp_type = type;
        return ibv_create_qp(of, &wanted);
    }
    // Connects `qp` to `peer`, which is of this device, and lets both send; `reads` at a time in each direction.
    static void connect(ibv_qp* qp, std::uint32_t peer, std::uint8_t reads = 4, ibv_mtu mtu = IBV_MTU_1024) {
        ibv_qp_attr to{};
        to.qp_state = IBV_QPS_INIT;
        to.port_num = 1;
        to.qp_access_flags = kAllAccess;
        ASSERT_EQ(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
        to = {};
        to.qp_state = IBV_QPS_RTR;
        to.path_mtu = mtu;
        to.dest_qp_num = peer;
        to.max_dest_rd_atomic = reads;
        to.min_rnr_timer = 12;
        to.ah_attr.is_global = 1;
        to.ah_attr.port_num = 1;
        to.ah_attr.grh.sgid_index = 1;
        to.ah_attr.grh.hop_limit = 64;
        ASSERT_EQ(ibv_query_gid(qp->context, 1, 1, &to.ah_attr.grh.dgid), 0);
        const int of_receivers = qp->qp_type == IBV_QPT_XRC_SEND ? 0 : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        constexpr int kOfAll = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
        ASSERT_EQ(ibv_modify_qp(qp, &to, kOfAll | of_receivers), 0);
        if (qp->qp_type == IBV_QPT_XRC_RECV) {
            return;
        }
        to = {};
        to.qp_state = IBV_QPS_RTS;
        to.timeout = 14;
        to.retry_cnt = 7;
        to.rnr_retry = 7;
        to.max_rd_atomic = reads;
        ASSERT_EQ(ibv_modify_qp(qp, &to,
                                IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                    IBV_QP_MAX_QP_RD_ATOMIC),
                  0);
    }
    static void connect_both(ibv_qp* one, ibv_qp* other) {
        connect(one, other->qp_num);
        connect(other, one->qp_num);
    }
    // Waits for the next completion, for some seconds at most. Returns it.
    ibv_wc next_completion() const {
        ibv_wc completion{};
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        int found = 0;
        while (found == 0 && std::chrono::steady_clock::now() < until) {
            found = ibv_poll_cq(cq, 1, &completion);
        }
        EXPECT_EQ(found, 1);
        return completion;
    }
    // Posts a signalled request of one piece, and waits for it. Returns its completion.
    ibv_wc do_work(ibv_qp* qp, ibv_wr_opcode opcode, ibv_sge piece, std::uint64_t remote = 0, std::uint32_t rkey = 0,
                   std::uint32_t srqn = 0) const {
        ibv_send_wr request{};
        request.sg_list = &piece;
        request.num_sge = 1;
        request.opcode = opcode;
        request.send_flags = IBV_SEND_SIGNALED;
        request.wr.rdma.remote_addr = remote;
        request.wr.rdma.rkey = rkey;
        request.qp_type.xrc.remote_srqn = srqn;
        ibv_send_wr* refused = nullptr;
        EXPECT_EQ(ibv_post_send(qp, &request, &refused), 0);
        return next_completion();
    }
    static int post_receive(ibv_qp* qp, ibv_sge piece) {
        ibv_recv_wr request{};
        request.sg_list = &piece;
        request.num_sge = 1;
        ibv_recv_wr* refused = nullptr;
        return ibv_post_recv(qp, &request, &refused);
    }
    template <class Bytes>
    static ibv_sge piece_of(const Bytes& bytes, std::uint32_t lkey) {
        return {reinterpret_cast<std::uint64_t>(bytes.data()), static_cast<std::uint32_t>(bytes.size()), lkey};
    }

    ibv_context* context = nullptr;
    ibv_pd* pd = nullptr;
    ibv_cq* cq = nullptr;
};

}  // namespace cairn::ibverbs
