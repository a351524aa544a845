// Requests with as many pieces as the device allows, and one more.
#include "tests/unit/ibverbs/verbs_rig.hpp"

namespace cairn::ibverbs {
namespace {

class PiecesTest : public VerbsTest {
protected:
    static constexpr std::uint32_t kMost = 32;
    static constexpr std::uint32_t kBytes = 3;  // bytes of a piece

    void SetUp() override {
        VerbsTest::SetUp();
        region_ = ibv_reg_mr(pd, bytes_.data(), bytes_.size(), kAllAccess);
        ASSERT_NE(region_, nullptr);
        for (std::size_t i = 0; i < bytes_.size() / 2; ++i) {
            bytes_[i] = static_cast<std::uint8_t>(i + 1);
        }
    }
    void TearDown() override {
        EXPECT_EQ(ibv_dereg_mr(region_), 0);
        VerbsTest::TearDown();
    }
    ibv_qp* make(std::uint32_t pieces, ibv_srq* srq = nullptr) const {
        ibv_qp_init_attr wanted{};
        wanted.send_cq = wanted.recv_cq = cq;
        wanted.srq = srq;
        wanted.cap = {4, 4, pieces, pieces, 0};
        wanted.qp_type = IBV_QPT_RC;
        return ibv_create_qp(pd, &wanted);
    }
    // Returns pieces of a few bytes with gaps of the same size, in one half.
    std::array<ibv_sge, kMost> pieces_of(std::size_t half) const {
        std::array<ibv_sge, kMost> all{};
        for (std::size_t i = 0; i < all.size(); ++i) {
            all[i] = {reinterpret_cast<std::uint64_t>(&bytes_[half * bytes_.size() / 2 + 2 * kBytes * i]), kBytes,
                      region_->lkey};
        }
        return all;
    }
    static ibv_recv_wr receive_of(std::array<ibv_sge, kMost>& pieces) {
        ibv_recv_wr request{};
        request.sg_list = pieces.data();
        request.num_sge = kMost;
        return request;
    }
    void send_all(ibv_qp* from) const {
        std::array<ibv_sge, kMost> pieces = pieces_of(0);
        ibv_send_wr request{};
        request.sg_list = pieces.data();
        request.num_sge = kMost;
        request.opcode = IBV_WR_SEND;
        ibv_send_wr* refused = nullptr;
        ASSERT_EQ(ibv_post_send(from, &request, &refused), 0);
        const ibv_wc received = next_completion();
        EXPECT_EQ(received.status, IBV_WC_SUCCESS);
        EXPECT_EQ(received.byte_len, kMost * kBytes);
        for (std::size_t i = 0; i < bytes_.size() / 2; ++i) {
            EXPECT_EQ(bytes_[bytes_.size() / 2 + i], i / kBytes % 2 == 0 ? bytes_[i] : 0) << i;
        }
    }

    std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(2 * 2 * std::size_t{kMost} * kBytes);
    ibv_mr* region_ = nullptr;
};

TEST_F(PiecesTest, AMessageOfManyArrivesInMany) {
    ibv_qp* const qp = make(kMost);
    ibv_qp* const peer = make(kMost);
    ASSERT_TRUE(qp != nullptr && peer != nullptr);
    connect_both(qp, peer);
    std::array<ibv_sge, kMost> to = pieces_of(1);
    ibv_recv_wr request = receive_of(to);
    ibv_recv_wr* refused = nullptr;
    ASSERT_EQ(ibv_post_recv(peer, &request, &refused), 0);
    send_all(qp);
    request.num_sge = kMost + 1;
    EXPECT_EQ(ibv_post_recv(peer, &request, &refused), EINVAL);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_destroy_qp(peer), 0);
}

TEST_F(PiecesTest, OfASharedQueueToo) {
    ibv_srq_init_attr wanted{nullptr, {4, kMost, 0}};
    ibv_srq* const srq = ibv_create_srq(pd, &wanted);
    ASSERT_NE(srq, nullptr);
    ibv_qp* const qp = make(kMost);
    ibv_qp* const peer = make(1, srq);
    ASSERT_TRUE(qp != nullptr && peer != nullptr);
    connect_both(qp, peer);
    std::array<ibv_sge, kMost> to = pieces_of(1);
    ibv_recv_wr request = receive_of(to);
    ibv_recv_wr* refused = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(srq, &request, &refused), 0);
    send_all(qp);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_destroy_qp(peer), 0);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(PiecesTest, TheDeviceSaysHowManyThereMayBe) {
    ibv_device_attr device{};
    ASSERT_EQ(ibv_query_device(context, &device), 0);
    EXPECT_EQ(device.max_sge, 32);
    EXPECT_EQ(device.max_mr, 1 << 20);
    EXPECT_EQ(make(kMost + 1), nullptr);
}

}  // namespace
}  // namespace cairn::ibverbs
