// Regions: null, on demand, zero-based; changes of them, and advice.
#include <poll.h>
#include <sys/mman.h>

#include <limits>
#include <utility>

#include "tests/unit/ibverbs/verbs_rig.hpp"

namespace cairn::ibverbs {
namespace {

constexpr std::size_t kEverything = std::numeric_limits<std::size_t>::max();

class MemoryTest : public VerbsTest {
protected:
    void SetUp() override {
        VerbsTest::SetUp();
        qp_ = make_qp(pd);
        peer_ = make_qp(pd);
        ASSERT_TRUE(qp_ != nullptr && peer_ != nullptr);
        connect_both(qp_, peer_);
        mr_ = ibv_reg_mr(pd, bytes_.data(), bytes_.size(), kAllAccess);
        ASSERT_NE(mr_, nullptr);
    }
    void TearDown() override {
        EXPECT_EQ(ibv_destroy_qp(qp_), 0);
        EXPECT_EQ(ibv_destroy_qp(peer_), 0);
        EXPECT_EQ(ibv_dereg_mr(mr_), 0);
        VerbsTest::TearDown();
    }
    // Writes `from` by the queue pair to the memory that `rkey` names, at `address`.
    ibv_wc write(ibv_sge from, std::uint64_t address, std::uint32_t rkey) const {
        return do_work(qp_, IBV_WR_RDMA_WRITE, from, address, rkey);
    }
    static std::uint64_t address_of(const void* at) { return reinterpret_cast<std::uint64_t>(at); }

    ibv_qp* qp_ = nullptr;
    ibv_qp* peer_ = nullptr;
    ibv_mr* mr_ = nullptr;
    std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(std::size_t{64} << 10U, 1);
};

TEST_F(MemoryTest, ANullRegionIsZerosToReadFrom) {
    ibv_mr* const null = ibv_alloc_null_mr(pd);
    ASSERT_NE(null, nullptr);
    EXPECT_EQ(null->length, kEverything);
    const ibv_sge nothing{12345, 50'000, null->lkey};
    EXPECT_EQ(write(nothing, address_of(bytes_.data()), mr_->rkey).status, IBV_WC_SUCCESS);
    EXPECT_EQ(bytes_, [this] {
        std::vector<std::uint8_t> wanted(bytes_.size(), 1);
        std::fill_n(wanted.begin(), 50'000, 0);
        return wanted;
    }());
    EXPECT_EQ(ibv_dereg_mr(null), 0);
}

TEST_F(MemoryTest, WhatIsWrittenToANullRegionIsLost) {
    ibv_mr* const null = ibv_alloc_null_mr(pd);
    ASSERT_NE(null, nullptr);
    const ibv_sge nothing{0, 50'000, null->lkey};
    EXPECT_EQ(do_work(qp_, IBV_WR_RDMA_READ, nothing, address_of(bytes_.data()), mr_->rkey).status, IBV_WC_SUCCESS);
    ASSERT_EQ(post_receive(peer_, nothing), 0);
    const ibv_sge from{address_of(bytes_.data()), 50'000, mr_->lkey};
    for (const ibv_wc& done : {do_work(qp_, IBV_WR_SEND, from), next_completion()}) {
        EXPECT_EQ(done.status, IBV_WC_SUCCESS);
        EXPECT_TRUE(done.opcode != IBV_WC_RECV || done.byte_len == 50'000);
    }
    const ibv_sge zeros{0, 16, null->lkey};  // null still reads zeros
    EXPECT_EQ(write(zeros, address_of(bytes_.data()), mr_->rkey).status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::vector<std::uint8_t>(bytes_.begin(), bytes_.begin() + 16), std::vector<std::uint8_t>(16, 0));
    EXPECT_EQ(ibv_dereg_mr(null), 0);
}

TEST_F(MemoryTest, ANullRegionIsOutOfReachForPeers) {
    ibv_mr* const null = ibv_alloc_null_mr(pd);
    ASSERT_NE(null, nullptr);
    EXPECT_EQ(write({address_of(bytes_.data()), 16, mr_->lkey}, 0, null->lkey).status, IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_PD, pd, nullptr, 0, 0), IBV_REREG_MR_ERR_INPUT);
    EXPECT_EQ(ibv_dereg_mr(null), 0);
}

TEST_F(MemoryTest, AllMemoryOfTheProcessIsARegionOnDemand) {
    ibv_mr* const all = ibv_reg_mr(pd, nullptr, kEverything, kAllAccess | IBV_ACCESS_ON_DEMAND);
    ASSERT_NE(all, nullptr);
    std::vector<std::uint8_t> later(50'000, 9);
    EXPECT_EQ(write(piece_of(later, all->lkey), address_of(bytes_.data()), all->rkey).status, IBV_WC_SUCCESS);
    EXPECT_TRUE(std::equal(later.begin(), later.end(), bytes_.begin()));
    EXPECT_EQ(ibv_dereg_mr(all), 0);
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(pd, nullptr, kEverything, kAllAccess), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(MemoryTest, OnDemandPagesNeedNotBeThere) {
    void* const page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(pd, page, 4096, IBV_ACCESS_LOCAL_WRITE), nullptr);
    EXPECT_EQ(errno, EFAULT);
    ibv_mr* const mr = ibv_reg_mr(pd, page, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
    ASSERT_NE(mr, nullptr);
    ibv_sge piece{address_of(page), 4096, mr->lkey};
    EXPECT_EQ(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &piece, 1), EFAULT);
    ASSERT_EQ(mprotect(page, 4096, PROT_READ | PROT_WRITE), 0);
    EXPECT_EQ(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, &piece, 1), 0);
    unsigned char present = 0;
    ASSERT_EQ(mincore(page, 4096, &present), 0);
    EXPECT_EQ(present & 1, 1);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    munmap(page, 4096);
}

TEST_F(MemoryTest, AdviceIsJudged) {
    ibv_sge piece = piece_of(bytes_, mr_->lkey);
    EXPECT_EQ(ibv_advise_mr(pd, static_cast<ibv_advise_mr_advice>(3), 0, &piece, 1), EOPNOTSUPP);
    EXPECT_EQ(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 8, &piece, 1), EINVAL);
    EXPECT_EQ(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &piece, 0), EINVAL);
    EXPECT_EQ(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, 0, &piece, 1), 0);
    ++piece.length;
    EXPECT_EQ(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &piece, 1), EFAULT);
    piece.lkey = ~mr_->lkey;
    EXPECT_EQ(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &piece, 1), ENOENT);
}

TEST_F(MemoryTest, ZeroBasedRegionsBeginAtZero) {
    std::vector<std::uint8_t> target(64, 0);
    volatile unsigned access = static_cast<unsigned>(kAllAccess) | IBV_ACCESS_ZERO_BASED;  // uses the other function
    for (ibv_mr* const mr : {ibv_reg_mr(pd, target.data(), target.size(), kAllAccess | IBV_ACCESS_ZERO_BASED),
                             ibv_reg_mr(pd, target.data(), target.size(), access)}) {
        ASSERT_NE(mr, nullptr);
        target.assign(64, 0);
        EXPECT_EQ(write({address_of(bytes_.data()), 4, mr_->lkey}, 60, mr->rkey).status, IBV_WC_SUCCESS);
        EXPECT_EQ(target[59], 0);
        EXPECT_EQ(target[60], 1);
        EXPECT_EQ(ibv_dereg_mr(mr), 0);
    }
}

TEST_F(MemoryTest, ARegionIsNamedByTheAddressThatItWasGiven) {
    std::vector<std::uint8_t> target(64, 0);
    constexpr std::uint64_t kIova = 0x1000'0000'0000;
    ibv_mr* const mr = ibv_reg_mr_iova(pd, target.data(), target.size(), kIova, kAllAccess);
    ASSERT_NE(mr, nullptr);
    EXPECT_EQ(mr->addr, target.data());
    EXPECT_EQ(write({address_of(bytes_.data()), 4, mr_->lkey}, kIova + 60, mr->rkey).status, IBV_WC_SUCCESS);
    EXPECT_EQ(target[60], 1);
    EXPECT_EQ(write({address_of(bytes_.data()), 4, mr_->lkey}, kIova + 61, mr->rkey).status, IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(MemoryTest, OptionalAccessIsTaken) {
    volatile unsigned access = static_cast<unsigned>(kAllAccess) | IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_HUGETLB;
    ibv_mr* const mr = ibv_reg_mr(pd, bytes_.data(), bytes_.size(), access);
    ASSERT_NE(mr, nullptr);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(pd, bytes_.data(), bytes_.size(), 1 << 8), nullptr);
    EXPECT_EQ(errno, EINVAL);
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(pd, bytes_.data(), bytes_.size(), IBV_ACCESS_REMOTE_WRITE), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(MemoryTest, AChangedRegionHasOtherMemory) {
    std::vector<std::uint8_t> target(64, 0);
    std::vector<std::uint8_t> other(64, 0);
    ibv_mr* const mr = ibv_reg_mr(pd, target.data(), target.size(), IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(mr, nullptr);
    EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, nullptr, other.data(),
                           other.size(), kAllAccess),
              0);
    EXPECT_EQ(mr->addr, other.data());
    EXPECT_EQ(write({address_of(bytes_.data()), 4, mr_->lkey}, address_of(other.data()), mr->rkey).status,
              IBV_WC_SUCCESS);
    EXPECT_EQ(other[0], 1);
    EXPECT_EQ(target[0], 0);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(MemoryTest, AChangedRegionBelongsToTheOtherDomain) {
    ibv_pd* const other = ibv_alloc_pd(context);
    std::vector<std::uint8_t> target(64, 0);
    ibv_mr* const mr = ibv_reg_mr(pd, target.data(), target.size(), kAllAccess);
    ASSERT_NE(mr, nullptr);
    EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, nullptr, 0, 0), 0);
    EXPECT_EQ(mr->pd, other);
    EXPECT_EQ(ibv_dealloc_pd(other), EBUSY);
    EXPECT_EQ(write({address_of(bytes_.data()), 4, mr_->lkey}, address_of(target.data()), mr->rkey).status,
              IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(ibv_dealloc_pd(other), 0);
}

TEST_F(MemoryTest, ARefusedChangeChangesNothing) {
    void* const page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ibv_mr* const mr = ibv_reg_mr(pd, page, 4096, IBV_ACCESS_REMOTE_READ);
    ASSERT_NE(mr, nullptr);
    const auto refused = [&](int which, void* address, int access) {
        errno = 0;
        const int result = ibv_rereg_mr(mr, which, nullptr, address, 4096, access);
        return std::pair(result, errno);
    };
    EXPECT_EQ(refused(1 << 5, nullptr, 0), std::pair(int{IBV_REREG_MR_ERR_INPUT}, EINVAL));
    EXPECT_EQ(refused(0, nullptr, 0), std::pair(int{IBV_REREG_MR_ERR_CMD}, EINVAL));
    EXPECT_EQ(refused(IBV_REREG_MR_CHANGE_ACCESS, nullptr, kAllAccess), std::pair(int{IBV_REREG_MR_ERR_CMD}, EFAULT));
    EXPECT_EQ(refused(IBV_REREG_MR_CHANGE_ACCESS, nullptr, IBV_ACCESS_REMOTE_WRITE),
              std::pair(int{IBV_REREG_MR_ERR_CMD}, EINVAL));
    EXPECT_EQ(refused(IBV_REREG_MR_CHANGE_TRANSLATION, reinterpret_cast<void*>(4096), 0),
              std::pair(int{IBV_REREG_MR_ERR_CMD}, EFAULT));
    EXPECT_EQ(mr->addr, page);
    bytes_.assign(bytes_.size(), 1);
    const ibv_sge to{address_of(bytes_.data()), 4, mr_->lkey};
    EXPECT_EQ(do_work(qp_, IBV_WR_RDMA_READ, to, address_of(page), mr->rkey).status, IBV_WC_SUCCESS);
    EXPECT_EQ(bytes_[0], 0);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    munmap(page, 4096);
}

// The helper thread, which blocks the program's signals, places arriving data between the program's calls.
TEST_F(MemoryTest, MemoryThatVanishedIsAnErrorWhoeverTouchesIt) {
    void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ibv_mr* const mr = ibv_reg_mr(pd, page, 4096, kAllAccess);
    ASSERT_NE(mr, nullptr);
    ibv_comp_channel* const channel = ibv_create_comp_channel(context);
    ibv_cq* const armed = ibv_create_cq(context, 8, nullptr, channel, 0);
    ibv_cq* const before = std::exchange(cq, armed);
    ibv_qp* const by = make_qp(pd);
    ibv_qp* const to = make_qp(pd);
    connect_both(by, to);
    ASSERT_EQ(ibv_req_notify_cq(armed, 0), 0);
    ASSERT_EQ(mprotect(page, 4096, PROT_NONE), 0);
    ibv_sge piece{address_of(bytes_.data()), 4, mr_->lkey};
    ibv_send_wr request{};
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma = {address_of(page), mr->rkey};
    ibv_send_wr* refused = nullptr;
    ASSERT_EQ(ibv_post_send(by, &request, &refused), 0);
    pollfd event{channel->fd, POLLIN, 0};
    EXPECT_EQ(poll(&event, 1, 20'000), 1);
    EXPECT_EQ(next_completion().status, IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_destroy_qp(by), 0);
    EXPECT_EQ(ibv_destroy_qp(to), 0);
    EXPECT_EQ(ibv_destroy_cq(armed), 0);
    EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
    cq = before;
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    munmap(page, 4096);
}

}  // namespace
}  // namespace cairn::ibverbs
