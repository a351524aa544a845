// One end of a connection in a program that uses verbs.h only, for tests of lib/ibverbs.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

namespace cairn::test {

// The facts that one end sends to the other.
struct EndName {
    ibv_gid gid{};
    std::uint32_t qpn = 0;
    std::uint32_t rkey = 0;
    std::uint64_t address = 0;
};

// A queue pair with its own domain, queue, channel and memory. One thread makes all calls of an end, unless the test
// says how several threads share it.
class VerbsEnd {
public:
    static constexpr std::uint32_t kBytes = 8192;
    static constexpr std::uint8_t kTimeout = 14;  // 67 ms
    static constexpr unsigned kSlots = 64;

    explicit VerbsEnd(ibv_context* context, ibv_qp_type type = IBV_QPT_RC) : memory(kBytes) {
        channel = ibv_create_comp_channel(context);
        domain = ibv_alloc_pd(context);
        queue = ibv_create_cq(context, 2 * kSlots, this, channel, 0);
        region = ibv_reg_mr(domain, memory.data(), memory.size(),
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
        ibv_qp_init_attr wanted{};
        wanted.send_cq = wanted.recv_cq = queue;
        wanted.cap = {kSlots, kSlots, 1, 1, 0};
        wanted.qp_type = type;
        wanted.sq_sig_all = 1;
        pair = ibv_create_qp(domain, &wanted);
    }
    VerbsEnd(const VerbsEnd&) = delete;
    VerbsEnd& operator=(const VerbsEnd&) = delete;
    ~VerbsEnd() {
        EXPECT_EQ(ibv_destroy_qp(pair), 0);
        ibv_ack_cq_events(queue, events_);
        EXPECT_EQ(ibv_destroy_cq(queue), 0);
        EXPECT_EQ(ibv_dereg_mr(region), 0);
        EXPECT_EQ(ibv_dealloc_pd(domain), 0);
        EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
    }

    [[nodiscard]] EndName name() const {
        EndName name;
        EXPECT_EQ(ibv_query_gid(pair->context, 1, 1, &name.gid), 0);
        name.qpn = pair->qp_num;
        name.rkey = region->rkey;
        name.address = reinterpret_cast<std::uintptr_t>(memory.data());
        return name;
    }

    void connect(const EndName& peer, std::uint8_t retries = 7) {
        ibv_qp_attr set{};
        set.qp_state = IBV_QPS_INIT;
        set.port_num = 1;
        set.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
        ASSERT_EQ(ibv_modify_qp(pair, &set, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
        set.qp_state = IBV_QPS_RTR;
        set.path_mtu = IBV_MTU_1024;
        set.dest_qp_num = peer.qpn;
        set.max_dest_rd_atomic = 4;
        set.min_rnr_timer = 1;
        set.ah_attr.is_global = 1;
        set.ah_attr.port_num = 1;
        set.ah_attr.grh.dgid = peer.gid;
        set.ah_attr.grh.sgid_index = 1;
        set.ah_attr.grh.hop_limit = 64;
        ASSERT_EQ(ibv_modify_qp(pair, &set,
                                IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
                  0);
        set.qp_state = IBV_QPS_RTS;
        set.timeout = kTimeout;
        set.retry_cnt = retries;
        set.rnr_retry = 7;
        set.max_rd_atomic = 4;
        ASSERT_EQ(ibv_modify_qp(pair, &set,
                                IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                    IBV_QP_MAX_QP_RD_ATOMIC),
                  0);
    }

    [[nodiscard]] int post_receive(std::uint64_t id, std::uint32_t at, std::uint32_t bytes) {
        ibv_sge piece = piece_of(at, bytes);
        ibv_recv_wr request{};
        request.wr_id = id;
        request.sg_list = &piece;
        request.num_sge = 1;
        ibv_recv_wr* refused = nullptr;
        return ibv_post_recv(pair, &request, &refused);
    }
    [[nodiscard]] int post_send(std::uint64_t id, std::uint32_t at, std::uint32_t bytes) {
        return post(request_of(id, IBV_WR_SEND), at, bytes);
    }
    // Writes to the same place in the peer's memory.
    [[nodiscard]] int post_write(std::uint64_t id, std::uint32_t at, std::uint32_t bytes, const EndName& peer) {
        ibv_send_wr request = request_of(id, IBV_WR_RDMA_WRITE);
        request.wr.rdma = {peer.address + at, peer.rkey};
        return post(request, at, bytes);
    }

    // Polls until there is a completion.
    [[nodiscard]] ibv_wc poll_one() {
        ibv_wc completion{};
        int count = 0;
        while (count == 0) {
            count = ibv_poll_cq(queue, 1, &completion);
        }
        EXPECT_EQ(count, 1);
        return completion;
    }
    // As poll_one(), but sleeps until the completion comes.
    [[nodiscard]] ibv_wc await_one() {
        ibv_wc completion{};
        while (ibv_poll_cq(queue, 1, &completion) == 0) {
            EXPECT_EQ(ibv_req_notify_cq(queue, 0), 0);
            if (ibv_poll_cq(queue, 1, &completion) != 0) {
                break;
            }
            ibv_cq* fired = nullptr;
            void* context = nullptr;
            EXPECT_EQ(ibv_get_cq_event(channel, &fired, &context), 0);
            EXPECT_EQ(context, this);
            ++events_;
        }
        return completion;
    }

    std::vector<std::uint8_t> memory;
    ibv_comp_channel* channel = nullptr;
    ibv_pd* domain = nullptr;
    ibv_cq* queue = nullptr;
    ibv_mr* region = nullptr;
    ibv_qp* pair = nullptr;

private:
    [[nodiscard]] ibv_sge piece_of(std::uint32_t at, std::uint32_t bytes) {
        return {reinterpret_cast<std::uintptr_t>(memory.data()) + at, bytes, region->lkey};
    }
    [[nodiscard]] static ibv_send_wr request_of(std::uint64_t id, ibv_wr_opcode opcode) {
        ibv_send_wr request{};
        request.wr_id = id;
        request.opcode = opcode;
        return request;
    }
    [[nodiscard]] int post(ibv_send_wr request, std::uint32_t at, std::uint32_t bytes) {
        ibv_sge piece = piece_of(at, bytes);
        request.sg_list = &piece;
        request.num_sge = 1;
        ibv_send_wr* refused = nullptr;
        return ibv_post_send(pair, &request, &refused);
    }

    unsigned events_ = 0;  // events that were taken; acknowledged at the end
};

}  // namespace cairn::test
