// Objects of an opened device, imported by another part of the process.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/unit/ibverbs/verbs_rig.hpp"

namespace cairn::ibverbs {
namespace {

class ImportTest : public VerbsTest {
protected:
    void SetUp() override {
        VerbsTest::SetUp();
        imported_ = ibv_import_device(context->cmd_fd);
        ASSERT_NE(imported_, nullptr);
    }
    void TearDown() override {
        EXPECT_EQ(ibv_close_device(imported_), 0);
        VerbsTest::TearDown();
    }

    ibv_context* imported_ = nullptr;
};

TEST_F(ImportTest, ADeviceIsFoundByAnyDescriptorOfIt) {
    EXPECT_NE(imported_, context);
    EXPECT_EQ(imported_->device, context->device);
    const int copy = fcntl(context->cmd_fd, F_DUPFD_CLOEXEC, 0);
    ibv_context* const again = ibv_import_device(copy);
    ASSERT_NE(again, nullptr);
    close(copy);
    ibv_port_attr port{};
    EXPECT_EQ(ibv_query_port(again, 1, &port), 0);
    EXPECT_EQ(ibv_close_device(again), 0);
}

TEST_F(ImportTest, OtherDescriptorsAreNoDevices) {
    errno = 0;
    EXPECT_EQ(ibv_import_device(-1), nullptr);
    EXPECT_EQ(errno, EINVAL);
    const int other = memfd_create("another", MFD_CLOEXEC);
    errno = 0;
    EXPECT_EQ(ibv_import_device(other), nullptr);
    EXPECT_EQ(errno, ENODEV);
    close(other);
}

TEST_F(ImportTest, ADeviceOfAnotherProcessIsOutOfReach) {
    const pid_t child = fork();
    if (child == 0) {
        const bool refused = ibv_import_device(context->cmd_fd) == nullptr && errno == EOPNOTSUPP;
        _exit(refused ? 0 : 1);
    }
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_F(ImportTest, WhatIsImportedIsTheSame) {
    std::vector<std::uint8_t> bytes(64, 7);
    std::vector<std::uint8_t> target(64, 0);
    ibv_mr* const from = ibv_reg_mr(pd, bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE);
    ibv_mr* const to = ibv_reg_mr(pd, target.data(), target.size(), kAllAccess);
    ASSERT_TRUE(from != nullptr && to != nullptr);
    ibv_pd* const other_pd = ibv_import_pd(imported_, pd->handle);
    ASSERT_NE(other_pd, nullptr);
    ibv_mr* const other_from = ibv_import_mr(other_pd, from->handle);
    ASSERT_NE(other_from, nullptr);
    EXPECT_EQ(other_from->length, bytes.size());
    ibv_mr* const null = ibv_alloc_null_mr(pd);
    ibv_mr* const other_null = ibv_import_mr(other_pd, null->handle);
    ASSERT_NE(other_null, nullptr);
    EXPECT_EQ(other_null->length, null->length);
    EXPECT_EQ(other_null->lkey, null->lkey);
    ibv_unimport_mr(other_null);
    EXPECT_EQ(ibv_dereg_mr(null), 0);
    ibv_qp* const qp = make_qp(other_pd);
    ibv_qp* const peer = make_qp(pd);
    ASSERT_TRUE(qp != nullptr && peer != nullptr);
    connect_both(qp, peer);
    EXPECT_EQ(do_work(qp, IBV_WR_RDMA_WRITE, piece_of(bytes, other_from->lkey),
                      reinterpret_cast<std::uint64_t>(target.data()), to->rkey)
                  .status,
              IBV_WC_SUCCESS);
    EXPECT_EQ(target, bytes);
    EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_destroy_qp(peer), 0);
    ibv_unimport_mr(other_from);
    ibv_unimport_pd(other_pd);
    EXPECT_EQ(ibv_dereg_mr(from), 0);
    EXPECT_EQ(ibv_dereg_mr(to), 0);
}

TEST_F(ImportTest, WhatEndsEndsForAll) {
    ibv_pd* const domain = ibv_alloc_pd(context);
    std::vector<std::uint8_t> bytes(64, 7);
    ibv_mr* const mr = ibv_reg_mr(domain, bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE);
    ibv_pd* const other_domain = ibv_import_pd(imported_, domain->handle);
    ASSERT_TRUE(mr != nullptr && other_domain != nullptr);
    ibv_mr* const other_mr = ibv_import_mr(other_domain, mr->handle);
    ASSERT_NE(other_mr, nullptr);
    EXPECT_EQ(ibv_dealloc_pd(other_domain), EBUSY);
    EXPECT_EQ(ibv_dereg_mr(other_mr), 0);
    EXPECT_EQ(ibv_dereg_mr(mr), EINVAL);
    errno = 0;
    EXPECT_EQ(ibv_import_mr(domain, mr->handle), nullptr);
    EXPECT_EQ(errno, ENOENT);
    ibv_unimport_mr(mr);
    EXPECT_EQ(ibv_dealloc_pd(domain), 0);
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(other_domain, bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE), nullptr);
    EXPECT_EQ(errno, EINVAL);
    ibv_unimport_pd(other_domain);
}

TEST_F(ImportTest, MemoryStaysWhileOneOfItsContextsIsOpen) {
    std::vector<std::uint8_t> bytes(64);
    ibv_mr* const region = ibv_reg_mr(pd, bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(region, nullptr);
    ibv_context* const another = ibv_import_device(context->cmd_fd);
    ASSERT_NE(another, nullptr);
    EXPECT_EQ(ibv_close_device(another), 0);
    EXPECT_EQ(ibv_dereg_mr(region), 0);  // it had not ended
}

TEST_F(ImportTest, DeviceMemoryIsImported) {
    ibv_alloc_dm_attr wanted{64, 0, 0};
    ibv_dm* const dm = ibv_alloc_dm(context, &wanted);
    ASSERT_NE(dm, nullptr);
    ibv_dm* const other = ibv_import_dm(imported_, dm->handle);
    ASSERT_NE(other, nullptr);
    const std::array<std::uint8_t, 4> bytes{1, 2, 3, 4};
    std::array<std::uint8_t, 4> found{};
    EXPECT_EQ(ibv_memcpy_to_dm(dm, 8, bytes.data(), 4), 0);
    EXPECT_EQ(ibv_memcpy_from_dm(found.data(), other, 8, 4), 0);
    EXPECT_EQ(found, bytes);
    EXPECT_EQ(ibv_free_dm(dm), 0);
    EXPECT_EQ(ibv_memcpy_from_dm(found.data(), other, 8, 4), EFAULT);
    EXPECT_EQ(ibv_free_dm(other), EINVAL);
    ibv_unimport_dm(other);
    errno = 0;
    EXPECT_EQ(ibv_import_dm(imported_, 12345), nullptr);
    EXPECT_EQ(errno, ENOENT);
    errno = 0;
    EXPECT_EQ(ibv_import_pd(imported_, 12345), nullptr);
    EXPECT_EQ(errno, ENOENT);
}

TEST_F(ImportTest, AnotherOpenedDeviceHasOtherObjects) {
    ibv_context* const stranger = ibv_open_device(test_device());
    ASSERT_NE(stranger, nullptr);
    errno = 0;
    EXPECT_EQ(ibv_import_pd(stranger, pd->handle), nullptr);
    EXPECT_EQ(errno, ENOENT);
    EXPECT_EQ(ibv_close_device(stranger), 0);
}

}  // namespace
}  // namespace cairn::ibverbs
