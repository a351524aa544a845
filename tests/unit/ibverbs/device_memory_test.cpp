// Device memory, as programs access it.
#include "tests/unit/ibverbs/verbs_rig.hpp"

namespace cairn::ibverbs {
namespace {

class DeviceMemoryTest : public VerbsTest {
protected:
    ibv_dm* allocate(std::size_t bytes, std::uint32_t alignment = 0) const {
        ibv_alloc_dm_attr wanted{bytes, alignment, 0};
        return ibv_alloc_dm(context, &wanted);
    }
    static constexpr unsigned kAccess = static_cast<unsigned>(kAllAccess) | IBV_ACCESS_ZERO_BASED;
};

TEST_F(DeviceMemoryTest, ItIsReachedByCopiesAndByRequests) {
    ibv_dm* const dm = allocate(8192, 12);
    ASSERT_NE(dm, nullptr);
    std::vector<std::uint8_t> bytes(8192, 3);
    EXPECT_EQ(ibv_memcpy_to_dm(dm, 0, bytes.data(), bytes.size()), 0);
    ibv_mr* const of_dm = ibv_reg_dm_mr(pd, dm, 4096, 4096, kAccess);
    std::vector<std::uint8_t> others(4096, 0);
    ibv_mr* const mr = ibv_reg_mr(pd, others.data(), others.size(), kAllAccess);
    ASSERT_TRUE(of_dm != nullptr && mr != nullptr);
    EXPECT_EQ(ibv_free_dm(dm), EBUSY);
    ibv_qp* const qp = make_qp(pd);
    ibv_qp* const peer = make_qp(pd);
    connect_both(qp, peer);
    const ibv_sge piece = piece_of(others, mr->lkey);
    EXPECT_EQ(do_work(qp, IBV_WR_RDMA_READ, piece, 0, of_dm->rkey).status, IBV_WC_SUCCESS);
    EXPECT_EQ(others, std::vector<std::uint8_t>(4096, 3));
    others.assign(4096, 5);
    EXPECT_EQ(do_work(qp, IBV_WR_RDMA_WRITE, piece, 0, of_dm->rkey).status, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_memcpy_from_dm(bytes.data(), dm, 4092, 8), 0);
    EXPECT_EQ(std::vector<std::uint8_t>(bytes.begin(), bytes.begin() + 8),
              (std::vector<std::uint8_t>{3, 3, 3, 3, 5, 5, 5, 5}));
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_destroy_qp(peer), 0);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(ibv_dereg_mr(of_dm), 0);
    EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(DeviceMemoryTest, TheDeviceSaysHowMuchThereIs) {
    ibv_device_attr_ex device{};
    ASSERT_EQ(ibv_query_device_ex(context, nullptr, &device), 0);
    ASSERT_GE(device.max_dm_size, std::size_t{1} << 20U);
    ibv_dm* const all = allocate(device.max_dm_size);
    ASSERT_NE(all, nullptr);
    errno = 0;
    EXPECT_EQ(allocate(4), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(ibv_free_dm(all), 0);
    ibv_dm* const some = allocate(4);
    ASSERT_NE(some, nullptr);
    EXPECT_EQ(ibv_free_dm(some), 0);
    errno = 0;
    EXPECT_EQ(allocate(device.max_dm_size + 1), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(DeviceMemoryTest, CopiesAndRegionsAreJudged) {
    ibv_dm* const dm = allocate(64);
    ASSERT_NE(dm, nullptr);
    std::array<std::uint8_t, 128> bytes{};
    EXPECT_EQ(ibv_memcpy_to_dm(dm, 2, bytes.data(), 4), EINVAL);
    EXPECT_EQ(ibv_memcpy_from_dm(bytes.data(), dm, 0, 68), EFAULT);
    errno = 0;
    EXPECT_EQ(ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_LOCAL_WRITE), nullptr);
    EXPECT_EQ(errno, EINVAL);
    ibv_mr* const mr = ibv_reg_dm_mr(pd, dm, 0, 64, kAccess);
    ASSERT_NE(mr, nullptr);
    EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 1), IBV_REREG_MR_ERR_INPUT);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(ibv_free_dm(dm), 0);
}

}  // namespace
}  // namespace cairn::ibverbs
