// Programs that close a device while some of its objects live.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "tests/support/verbs_devices.hpp"
#include "tests/support/verbs_end.hpp"

namespace cairn::test {
namespace {

constexpr std::uint32_t kPart = 64;

// Makes an end that its program never ends. It stays reachable, as LeakSanitizer requires.
VerbsEnd& forgotten_end(ibv_context* context) {
    static auto* const all = new std::vector<VerbsEnd*>;
    all->push_back(new VerbsEnd(context));
    return *all->back();
}

class CloseTest : public testing::Test {
protected:
    void SetUp() override {
        configure_devices();
        near = open_device("left");
        far = open_device("right");
        ASSERT_TRUE(near != nullptr && far != nullptr);
    }
    void TearDown() override { EXPECT_EQ(ibv_close_device(near), 0); }

    ibv_context* near = nullptr;
    ibv_context* far = nullptr;
};

TEST_F(CloseTest, NoPeerReachesTheMemoryOfADeviceThatWasClosed) {
    ibv_context* const other = open_device("right");  // the address stays in use
    ASSERT_NE(other, nullptr);
    VerbsEnd from(near);
    VerbsEnd& to = forgotten_end(far);
    from.connect(to.name(), 1);
    to.connect(from.name(), 1);
    const EndName name = to.name();
    std::fill(from.memory.begin(), from.memory.end(), 7);
    ASSERT_EQ(from.post_write(1, 0, kPart, name), 0);
    ASSERT_EQ(from.poll_one().status, IBV_WC_SUCCESS);
    ASSERT_EQ(to.memory[0], 7);
    ASSERT_EQ(ibv_req_notify_cq(to.queue, 0), 0);
    ASSERT_EQ(to.post_receive(2, 0, kPart), 0);
    EXPECT_EQ(ibv_close_device(far), 0);
    std::fill(from.memory.begin(), from.memory.end(), 8);
    ASSERT_EQ(from.post_write(3, 0, kPart, name), 0);
    ASSERT_EQ(from.post_send(4, 0, kPart), 0);
    EXPECT_EQ(from.poll_one().status, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(from.poll_one().status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(to.memory[0], 7);
    EXPECT_EQ(ibv_close_device(other), 0);
}

// Memory of one device that another device also reaches through its domain.
TEST_F(CloseTest, RegionsOfADeviceThatWasClosedHaveNoKey) {
    ibv_context* const other = open_device("right");
    ASSERT_NE(other, nullptr);
    VerbsEnd from(near);
    VerbsEnd& to = forgotten_end(far);
    VerbsEnd through(other);
    ibv_qp_init_attr_ex wanted{};
    wanted.qp_type = IBV_QPT_RC;
    wanted.send_cq = wanted.recv_cq = through.queue;
    wanted.cap = {1, 1, 1, 1, 0};
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;  // `other` of the PD, not of the domain's
                                                                             // context
    wanted.pd = to.domain;
    ASSERT_EQ(ibv_destroy_qp(through.pair), 0);
    through.pair = ibv_create_qp_ex(other, &wanted);
    ASSERT_NE(through.pair, nullptr);
    EndName name = to.name();
    name.qpn = through.pair->qp_num;
    from.connect(name);
    through.connect(from.name());
    ASSERT_EQ(from.post_write(1, 0, kPart, name), 0);
    ASSERT_EQ(from.poll_one().status, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_close_device(far), 0);
    ASSERT_EQ(from.post_write(3, 0, kPart, name), 0);
    EXPECT_EQ(from.poll_one().status, IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_destroy_qp(through.pair), 0);
    through.pair = ibv_create_qp_ex(other, &(wanted.pd = through.domain, wanted));
    ASSERT_NE(through.pair, nullptr);
}

TEST_F(CloseTest, ObjectsMayEndBehindTheirDevice) {
    VerbsEnd from(near);
    VerbsEnd& to = forgotten_end(far);
    from.connect(to.name());
    to.connect(from.name());
    EXPECT_EQ(ibv_close_device(far), 0);
    EXPECT_EQ(ibv_destroy_qp(to.pair), 0);
    EXPECT_EQ(ibv_destroy_cq(to.queue), 0);
    EXPECT_EQ(ibv_destroy_comp_channel(to.channel), 0);
    EXPECT_EQ(ibv_dereg_mr(to.region), EINVAL);  // it has ended
    EXPECT_EQ(ibv_dealloc_pd(to.domain), EBUSY);
}

TEST_F(CloseTest, AnAddressIsFreeOnceTheLastObjectHasEnded) {
    ibv_context* const context = open_device("spare");
    ASSERT_NE(context, nullptr);
    ibv_pd* const pd = ibv_alloc_pd(context);
    EXPECT_EQ(ibv_close_device(context), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);  // ends a process that hangs
        _exit(open_device("spare") != nullptr ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(ibv_close_device(far), 0);
}

}  // namespace
}  // namespace cairn::test
