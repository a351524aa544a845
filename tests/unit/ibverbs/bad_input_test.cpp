// Invalid arguments get an errno value, as from rdma-core and its kernel: tables of calls and their results.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <limits>

#include "tests/support/verbs_devices.hpp"
#include "tests/support/verbs_end.hpp"

namespace cairn::test {
namespace {

struct Case {
    const char* what;
    std::function<int()> call;  // returns an errno value, or 0 for success
    int wanted;
};

template <class Object>
int made(const Object* object) {
    return object != nullptr ? 0 : errno;
}

// Returns the errno value of a call that returns -1 on failure.
int done(int result) {
    return result == 0 ? 0 : errno;
}

class BadInput : public testing::Test {
protected:
    BadInput() {
        configure_devices();
        context = open_device("left");
        other = open_device("right");
        end = std::make_unique<VerbsEnd>(context);
        datagrams = std::make_unique<VerbsEnd>(context, IBV_QPT_UD);
        foreign = std::make_unique<VerbsEnd>(other);
    }
    ~BadInput() override {
        end.reset();
        datagrams.reset();
        foreign.reset();
        EXPECT_EQ(ibv_close_device(context), 0);
        EXPECT_EQ(ibv_close_device(other), 0);
    }
    BadInput(const BadInput&) = delete;
    BadInput& operator=(const BadInput&) = delete;

    static void expect(const std::vector<Case>& cases) {
        for (const Case& each : cases) {
            errno = 0;
            EXPECT_EQ(each.call(), each.wanted) << each.what;
        }
    }
    // Creates a queue pair from correct attributes with a change.
    int create(const std::function<void(ibv_qp_init_attr&)>& change) {
        ibv_qp_init_attr wanted{};
        wanted.send_cq = wanted.recv_cq = end->queue;
        wanted.cap = {4, 4, 1, 1, 0};
        wanted.qp_type = IBV_QPT_RC;
        change(wanted);
        return made(ibv_create_qp(end->domain, &wanted));
    }
    int modify(int mask, const std::function<void(ibv_qp_attr&)>& change) {
        ibv_qp_attr set{};
        set.qp_state = IBV_QPS_INIT;
        set.port_num = 1;
        change(set);
        return ibv_modify_qp(end->pair, &set, mask);
    }
    int send(VerbsEnd& by, const std::function<void(ibv_send_wr&)>& change) {
        ibv_sge piece{reinterpret_cast<std::uintptr_t>(by.memory.data()), 8, by.region->lkey};
        ibv_send_wr request{};
        request.sg_list = &piece;
        request.num_sge = 1;
        request.opcode = IBV_WR_SEND;
        change(request);
        ibv_send_wr* refused = nullptr;
        const int reason = ibv_post_send(by.pair, &request, &refused);
        EXPECT_TRUE(reason == 0 || refused == &request);
        return reason;
    }
    int receive(int pieces) {
        std::array<ibv_sge, 2> sges{};
        ibv_recv_wr request{};
        request.sg_list = sges.data();
        request.num_sge = pieces;
        ibv_recv_wr* refused = nullptr;
        return ibv_post_recv(end->pair, &request, &refused);
    }
    int again(int which, ibv_pd* in, void* at, std::size_t bytes) {
        return ibv_rereg_mr(end->region, which, in, at, bytes, 0) == 0 ? 0 : errno;
    }
    ibv_ah_attr way() {
        ibv_ah_attr to{};
        to.is_global = 1;
        to.port_num = 1;
        to.grh.dgid = end->name().gid;
        to.grh.sgid_index = 1;
        return to;
    }
    int reach(const std::function<void(ibv_ah_attr&)>& change) {
        ibv_ah_attr to = way();
        change(to);
        return made(ibv_create_ah(end->domain, &to));
    }

    ibv_context* context = nullptr;
    ibv_context* other = nullptr;
    std::unique_ptr<VerbsEnd> end;
    std::unique_ptr<VerbsEnd> datagrams;
    std::unique_ptr<VerbsEnd> foreign;
};

constexpr std::uint32_t kHuge = std::numeric_limits<std::uint32_t>::max();

TEST_F(BadInput, OfQuestions) {
    ibv_port_attr port{};
    ibv_gid gid{};
    ibv_gid_entry entry{};
    __be16 pkey = 0;
    expect({
        {"port 0", [&] { return ibv_query_port(context, 0, &port); }, EINVAL},
        {"port 2", [&] { return ibv_query_port(context, 2, &port); }, EINVAL},
        {"a GID below the first", [&] { return done(ibv_query_gid(context, 1, -1, &gid)); }, EINVAL},
        {"a GID behind the last", [&] { return done(ibv_query_gid(context, 1, 100'000, &gid)); }, EINVAL},
        {"a GID of port 2", [&] { return done(ibv_query_gid(context, 2, 0, &gid)); }, EINVAL},
        {"a slot that is empty", [&] { return ibv_query_gid_ex(context, 1, 2, &entry, 0); }, ENODATA},
        {"flags that mean nothing", [&] { return ibv_query_gid_ex(context, 1, 1, &entry, 7); }, EINVAL},
        {"partition 1", [&] { return done(ibv_query_pkey(context, 1, 1, &pkey)); }, EINVAL},
    });
}

TEST_F(BadInput, OfQueues) {
    ibv_srq_init_attr none{};
    ibv_srq_init_attr many{nullptr, {kHuge, 1, 0}};
    ibv_srq_init_attr pieces{nullptr, {4, kHuge, 0}};
    const auto shared = [&](ibv_srq_init_attr& wanted) { return made(ibv_create_srq(end->domain, &wanted)); };
    expect({
        {"no slots", [&] { return made(ibv_create_cq(context, 0, nullptr, nullptr, 0)); }, EINVAL},
        {"fewer", [&] { return made(ibv_create_cq(context, -1, nullptr, nullptr, 0)); }, EINVAL},
        {"too many", [&] { return made(ibv_create_cq(context, 1 << 30, nullptr, nullptr, 0)); }, EINVAL},
        {"vector 1", [&] { return made(ibv_create_cq(context, 4, nullptr, nullptr, 1)); }, EINVAL},
        {"vector -1", [&] { return made(ibv_create_cq(context, 4, nullptr, nullptr, -1)); }, EINVAL},
        {"resized to nothing", [&] { return ibv_resize_cq(end->queue, 0); }, EINVAL},
        {"resized to too many", [&] { return ibv_resize_cq(end->queue, 1 << 30); }, EINVAL},
        {"a shared queue of no slots", [&] { return shared(none); }, EINVAL},
        {"a shared queue of too many", [&] { return shared(many); }, EINVAL},
        {"a shared queue of too many pieces", [&] { return shared(pieces); }, EINVAL},
    });
}

TEST_F(BadInput, OfQueuePairs) {
    expect({
        {"no queue to send", [&] { return create([](auto& of) { of.send_cq = nullptr; }); }, EINVAL},
        {"no queue to receive", [&] { return create([](auto& of) { of.recv_cq = nullptr; }); }, EINVAL},
        {"too many to send", [&] { return create([](auto& of) { of.cap.max_send_wr = kHuge; }); }, EINVAL},
        {"too many to receive", [&] { return create([](auto& of) { of.cap.max_recv_wr = kHuge; }); }, EINVAL},
        {"too many pieces", [&] { return create([](auto& of) { of.cap.max_send_sge = kHuge; }); }, EINVAL},
        {"too much inline", [&] { return create([](auto& of) { of.cap.max_inline_data = kHuge; }); }, EINVAL},
        {"raw packets", [&] { return create([](auto& of) { of.qp_type = IBV_QPT_RAW_PACKET; }); }, EOPNOTSUPP},
        {"no such type", [&] { return create([](auto& of) { of.qp_type = static_cast<ibv_qp_type>(99); }); },
         EOPNOTSUPP},
    });
}

TEST_F(BadInput, OfChangesOfAQueuePair) {
    constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    const auto nothing = [](ibv_qp_attr&) {};
    const auto to = [](ibv_qp_state state) { return [state](ibv_qp_attr& set) { set.qp_state = state; }; };
    expect({
        {"no port", [&] { return modify(kInit & ~IBV_QP_PORT, nothing); }, EINVAL},
        {"port 2", [&] { return modify(kInit, [](auto& set) { set.port_num = 2; }); }, EINVAL},
        {"partition 5", [&] { return modify(kInit, [](auto& set) { set.pkey_index = 5; }); }, EINVAL},
        {"no such right", [&] { return modify(kInit, [](auto& set) { set.qp_access_flags = 1U << 19U; }); }, EINVAL},
        {"a bit that means nothing", [&] { return modify(kInit | 1 << 30, nothing); }, EINVAL},
        {"not from its state",
         [&] { return modify(kInit | IBV_QP_CUR_STATE, [](auto& set) { set.cur_qp_state = IBV_QPS_RTS; }); }, EINVAL},
        {"two states at once", [&] { return modify(IBV_QP_STATE, to(IBV_QPS_RTR)); }, EINVAL},
        {"three", [&] { return modify(IBV_QP_STATE, to(IBV_QPS_RTS)); }, EINVAL},
        {"no such state", [&] { return modify(IBV_QP_STATE, to(IBV_QPS_UNKNOWN)); }, EINVAL},
        {"right at last", [&] { return modify(kInit, nothing); }, 0},
    });
    constexpr int kRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    const auto ready = [&](int mask, const std::function<void(ibv_qp_attr&)>& change) {
        return modify(mask, [&](ibv_qp_attr& set) {
            set.qp_state = IBV_QPS_RTR;
            set.ah_attr = way();
            set.path_mtu = IBV_MTU_1024;
            set.dest_qp_num = 17;
            change(set);
        });
    };
    expect({
        {"no way", [&] { return ready(kRtr & ~IBV_QP_AV, nothing); }, EINVAL},
        {"no MTU", [&] { return ready(kRtr, [](auto& set) { set.path_mtu = ibv_mtu{}; }); }, EINVAL},
        {"no such MTU", [&] { return ready(kRtr, [](auto& set) { set.path_mtu = static_cast<ibv_mtu>(7); }); }, EINVAL},
        {"too many reads", [&] { return ready(kRtr, [](auto& set) { set.max_dest_rd_atomic = 255; }); }, EINVAL},
        {"no GID", [&] { return ready(kRtr, [](auto& set) { set.ah_attr.is_global = 0; }); }, EINVAL},
        {"a GID of nobody", [&] { return ready(kRtr, [](auto& set) { set.ah_attr.grh.dgid = {}; }); }, EINVAL},
        {"from a GID behind the last", [&] { return ready(kRtr, [](auto& set) { set.ah_attr.grh.sgid_index = 200; }); },
         EINVAL},
        {"right at last", [&] { return ready(kRtr, nothing); }, 0},
    });
}

TEST_F(BadInput, OfRequests) {
    expect({
        {"sent before it is connected", [&] { return send(*end, [](auto&) {}); }, EINVAL},
        {"received before it begins", [&] { return receive(1); }, EINVAL},
    });
    end->connect(end->name());  // connects to itself
    expect({
        {"no such operation", [&] { return send(*end, [](auto& of) { of.opcode = IBV_WR_DRIVER1; }); }, EOPNOTSUPP},
        {"large sends", [&] { return send(*end, [](auto& of) { of.opcode = IBV_WR_TSO; }); }, EINVAL},
        {"fewer pieces than none", [&] { return send(*end, [](auto& of) { of.num_sge = -1; }); }, EINVAL},
        {"too many pieces", [&] { return send(*end, [](auto& of) { of.num_sge = 1 << 20; }); }, EINVAL},
        {"inline, which it has no room for",
         [&] { return send(*end, [](auto& of) { of.send_flags = IBV_SEND_INLINE; }); }, EINVAL},
        {"a window that is none", [&] { return send(*end, [](auto& of) { of.opcode = IBV_WR_BIND_MW; }); }, EINVAL},
        {"fewer pieces to receive than none", [&] { return receive(-1); }, EINVAL},
        {"too many pieces to receive", [&] { return receive(1 << 20); }, EINVAL},
    });
    for (unsigned i = 0; i < VerbsEnd::kSlots; ++i) {
        ASSERT_EQ(end->post_receive(i, 0, 8), 0);
    }
    EXPECT_EQ(end->post_receive(0, 0, 8), ENOMEM);
}

TEST_F(BadInput, OfDatagrams) {
    ibv_qp_attr set{};
    set.port_num = 1;
    set.qp_state = IBV_QPS_INIT;
    ASSERT_EQ(ibv_modify_qp(datagrams->pair, &set, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
    set.qp_state = IBV_QPS_RTR;
    ASSERT_EQ(ibv_modify_qp(datagrams->pair, &set, IBV_QP_STATE), 0);
    set.qp_state = IBV_QPS_RTS;
    ASSERT_EQ(ibv_modify_qp(datagrams->pair, &set, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    ibv_ah_attr to = way();
    to.grh.dgid = foreign->name().gid;
    ibv_ah* const theirs = ibv_create_ah(foreign->domain, &to);
    ASSERT_NE(theirs, nullptr);
    const ibv_gid unicast = end->name().gid;
    expect({
        {"to nobody", [&] { return send(*datagrams, [](auto&) {}); }, EINVAL},
        {"by another device's way", [&] { return send(*datagrams, [&](auto& of) { of.wr.ud.ah = theirs; }); }, EINVAL},
        {"written", [&] { return send(*datagrams, [&](auto& of) { of.opcode = IBV_WR_RDMA_WRITE; }); }, EINVAL},
        {"a group of one host", [&] { return ibv_attach_mcast(datagrams->pair, &unicast, 0); }, EINVAL},
        {"a group that was not joined", [&] { return ibv_detach_mcast(datagrams->pair, &unicast, 0); }, EINVAL},
        {"a group of a connection", [&] { return ibv_attach_mcast(end->pair, &unicast, 0); }, EINVAL},
        {"a way from no GID", [&] { return reach([](auto& of) { of.is_global = 0; }); }, EINVAL},
        {"a way from port 0", [&] { return reach([](auto& of) { of.port_num = 0; }); }, EINVAL},
        {"a way from a GID behind the last", [&] { return reach([](auto& of) { of.grh.sgid_index = 200; }); }, EINVAL},
        {"a way to nobody", [&] { return reach([](auto& of) { of.grh.dgid = {}; }); }, EINVAL},
    });
    EXPECT_EQ(ibv_destroy_ah(theirs), 0);
}

TEST_F(BadInput, OfMemory) {
    constexpr std::size_t kPage = 4096;
    void* const hole = mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void* const constant = mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_TRUE(hole != MAP_FAILED && constant != MAP_FAILED);
    constexpr std::size_t kWhole = std::numeric_limits<std::size_t>::max();
    const std::size_t address = reinterpret_cast<std::uintptr_t>(constant);
    ibv_alloc_dm_attr few{16, 0, 0};
    ibv_dm* const on_device = ibv_alloc_dm(context, &few);
    ASSERT_NE(on_device, nullptr);
    const auto reg = [&](void* at, std::size_t bytes, int access) {
        return made(ibv_reg_mr(end->domain, at, bytes, static_cast<unsigned>(access)));
    };
    const auto copy = [&](std::uint64_t at, std::size_t bytes) {
        return ibv_memcpy_from_dm(end->memory.data(), on_device, at, bytes);
    };
    expect({
        {"no memory", [&] { return reg(nullptr, kPage, 0); }, EFAULT},
        {"memory that may not be read", [&] { return reg(hole, kPage, 0); }, EFAULT},
        {"constants to be written", [&] { return reg(constant, kPage, IBV_ACCESS_LOCAL_WRITE); }, EFAULT},
        {"more than there is", [&] { return reg(constant, kWhole / 2, 0); }, EFAULT},
        {"memory that wraps", [&] { return reg(constant, kWhole, 0); }, EINVAL},
        {"memory that wraps by a byte", [&] { return reg(constant, kWhole - address + 1, 0); }, EINVAL},
        {"memory up to the last page", [&] { return reg(constant, kWhole - address, 0); }, EFAULT},
        {"device memory that is far more", [&] { return copy(kWhole - 3, 8); }, EFAULT},
        {"device memory behind its end", [&] { return copy(16, 4); }, EFAULT},
        {"a window of no kind", [&] { return made(ibv_alloc_mw(end->domain, static_cast<ibv_mw_type>(3))); }, EINVAL},
        {"registered again as memory that wraps",
         [&] { return again(IBV_REREG_MR_CHANGE_TRANSLATION, end->domain, end->memory.data(), kWhole); }, EINVAL},
    });
    EXPECT_EQ(ibv_free_dm(on_device), 0);
    munmap(hole, kPage);
    munmap(constant, kPage);
}

// One lock guards the objects of a device; objects of two devices have none in common.
TEST_F(BadInput, OfObjectsOfTwoDevices) {
    ibv_srq_init_attr some{nullptr, {4, 1, 0}};
    ibv_srq* const shared = ibv_create_srq(foreign->domain, &some);
    ibv_mw* const window = ibv_alloc_mw(foreign->domain, IBV_MW_TYPE_1);
    ibv_alloc_dm_attr few{16, 0, 0};
    ibv_dm* const on_device = ibv_alloc_dm(other, &few);
    ibv_td_init_attr plain{};
    ibv_td* const thread = ibv_alloc_td(other, &plain);
    ASSERT_TRUE(shared != nullptr && window != nullptr && on_device != nullptr && thread != nullptr);
    const auto parent = [&](ibv_pd* of, ibv_td* with) {
        ibv_parent_domain_init_attr wanted{of, with, 0, nullptr, nullptr, nullptr};
        return made(ibv_alloc_parent_domain(context, &wanted));
    };
    const auto bind = [&](VerbsEnd& by, ibv_mw* which, ibv_mr* to) {
        ibv_mw_bind wanted{};
        wanted.bind_info = {to, reinterpret_cast<std::uintptr_t>(end->memory.data()), 8, IBV_ACCESS_REMOTE_READ};
        return by.pair->context->ops.bind_mw(by.pair, which, &wanted);
    };
    expect({
        {"a queue to send", [&] { return create([&](auto& of) { of.send_cq = foreign->queue; }); }, EINVAL},
        {"a queue to receive", [&] { return create([&](auto& of) { of.recv_cq = foreign->queue; }); }, EINVAL},
        {"a shared queue", [&] { return create([&](auto& of) { of.srq = shared; }); }, EINVAL},
        {"a channel", [&] { return made(ibv_create_cq(context, 4, nullptr, foreign->channel, 0)); }, EINVAL},
        {"a parent of its domain", [&] { return parent(foreign->domain, nullptr); }, EINVAL},
        {"a parent of its thread", [&] { return parent(end->domain, thread); }, EINVAL},
        {"a domain to register in again", [&] { return again(IBV_REREG_MR_CHANGE_PD, foreign->domain, nullptr, 0); },
         EINVAL},
        {"device memory", [&] { return made(ibv_reg_dm_mr(end->domain, on_device, 0, 16, IBV_ACCESS_ZERO_BASED)); },
         EINVAL},
        {"a window", [&] { return bind(*end, window, end->region); }, EINVAL},
        {"a region of a window", [&] { return bind(*foreign, window, end->region); }, EINVAL},
    });
    EXPECT_EQ(ibv_destroy_srq(shared), 0);
    EXPECT_EQ(ibv_dealloc_mw(window), 0);
    EXPECT_EQ(ibv_free_dm(on_device), 0);
    EXPECT_EQ(ibv_dealloc_td(thread), 0);
}

TEST_F(BadInput, EndsOfWhatIsUsed) {
    expect({
        {"a domain", [&] { return ibv_dealloc_pd(end->domain); }, EBUSY},
        {"a queue", [&] { return ibv_destroy_cq(end->queue); }, EBUSY},
        {"a channel", [&] { return ibv_destroy_comp_channel(end->channel); }, EBUSY},
    });
}

}  // namespace
}  // namespace cairn::test
