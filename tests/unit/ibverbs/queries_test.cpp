// Queries of devices, and the structures that libraries pass on.
#include <cstring>

#include "lib/ibverbs/private_api.hpp"
#include "tests/unit/ibverbs/verbs_rig.hpp"

namespace cairn::ibverbs {
namespace {

using QueriesTest = VerbsTest;

TEST_F(QueriesTest, TheTableOfGidsIsGivenWholeOrNotAtAll) {
    std::array<ibv_gid_entry, 8> entries{};
    ASSERT_EQ(ibv_query_gid_table(context, entries.data(), entries.size(), 0), 2);
    EXPECT_EQ(entries[0].gid_index, 0U);
    EXPECT_EQ(entries[1].gid_index, 1U);
    EXPECT_EQ(entries[1].gid_type, std::uint32_t{IBV_GID_TYPE_ROCE_V2});
    EXPECT_EQ(entries[1].port_num, 1U);
    ibv_gid_entry one{};
    ASSERT_EQ(ibv_query_gid_ex(context, 1, 1, &one, 0), 0);
    EXPECT_EQ(std::memcmp(&one.gid, &entries[1].gid, sizeof(one.gid)), 0);
    EXPECT_EQ(ibv_query_gid_ex(context, 1, 2, &one, 0), ENODATA);
    EXPECT_EQ(ibv_query_gid_ex(context, 2, 0, &one, 0), EINVAL);
    EXPECT_EQ(ibv_query_gid_table(context, entries.data(), 1, 0), -EINVAL);
    EXPECT_EQ(ibv_query_gid_table(context, entries.data(), entries.size(), 1), -EINVAL);
    int type = 7;
    EXPECT_EQ(ibv_query_gid_type(context, 1, 1, &type), 0);
    EXPECT_EQ(type, 1);
    EXPECT_EQ(ibv_query_gid_type(context, 1, 5, &type), 0);
    EXPECT_EQ(type, 0);
    EXPECT_EQ(ibv_query_gid_type(context, 1, 1000, &type), -1);
}

TEST_F(QueriesTest, ThereIsOneKey) {
    __be16 pkey = 0;
    EXPECT_EQ(ibv_query_pkey(context, 1, 0, &pkey), 0);
    EXPECT_EQ(pkey, 0xffff);
    EXPECT_EQ(ibv_get_pkey_index(context, 1, pkey), 0);
    EXPECT_EQ(ibv_query_pkey(context, 1, 1, &pkey), -1);
    EXPECT_EQ(ibv_get_pkey_index(context, 1, 0x1234), -1);
}

TEST_F(QueriesTest, TheClockGoesOn) {
    ibv_values_ex one{};
    one.comp_mask = IBV_VALUES_MASK_RAW_CLOCK | 1U << 9U;
    ASSERT_EQ(ibv_query_rt_values_ex(context, &one), 0);
    EXPECT_EQ(one.comp_mask, std::uint32_t{IBV_VALUES_MASK_RAW_CLOCK});
    ibv_values_ex other = one;
    ASSERT_EQ(ibv_query_rt_values_ex(context, &other), 0);
    EXPECT_EQ(other.raw_clock.tv_sec, 0);
    EXPECT_GE(other.raw_clock.tv_nsec, one.raw_clock.tv_nsec);
}

TEST_F(QueriesTest, TheDeviceSaysWhatItHas) {
    ibv_device_attr_ex device{};
    ASSERT_EQ(ibv_query_device_ex(context, nullptr, &device), 0);
    EXPECT_EQ(device.odp_caps.general_caps, std::uint64_t{IBV_ODP_SUPPORT} | IBV_ODP_SUPPORT_IMPLICIT);
    EXPECT_NE(device.odp_caps.per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_ATOMIC, 0U);
    EXPECT_NE(device.cq_mod_caps.max_cq_count, 0);
    EXPECT_NE(device.max_dm_size, 0U);
    EXPECT_NE(device.device_cap_flags_ex & std::uint64_t{1} << 40U, 0U);  // IBV_DEVICE_ATOMIC_WRITE
    EXPECT_EQ(device.device_cap_flags_ex & 0xffffffffU, device.orig_attr.device_cap_flags);
}

TEST_F(QueriesTest, NoConnectionIsEnhanced) {
    ibv_qp* const qp = make_qp(pd);
    ibv_ece ece{1, 2, 3};
    EXPECT_EQ(ibv_set_ece(qp, &ece), EOPNOTSUPP);
    EXPECT_EQ(ibv_query_ece(qp, &ece), EOPNOTSUPP);
    EXPECT_EQ(ece.vendor_id, 0U);
    EXPECT_EQ(ibv_set_ece(qp, &ece), 0);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

// Programs built with newer headers name rights to FLUSH, which no region has.
TEST_F(QueriesTest, AQueuePairMayNameRightsToFlush) {
    ibv_qp* const qp = make_qp(pd);
    ASSERT_NE(qp, nullptr);
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_INIT;
    to.port_num = 1;
    to.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | 3U << 8U;
    EXPECT_EQ(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
    ibv_qp_init_attr made{};
    EXPECT_EQ(ibv_query_qp(qp, &to, IBV_QP_ACCESS_FLAGS, &made), 0);
    EXPECT_EQ(to.qp_access_flags, static_cast<unsigned>(IBV_ACCESS_REMOTE_WRITE));
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST(StringsTest, RequestsHaveNames) {
    EXPECT_STREQ(ibv_wr_opcode_str(IBV_WR_RDMA_WRITE), "rdma-write");
    EXPECT_STREQ(ibv_wr_opcode_str(IBV_WR_SEND_WITH_INV), "send-with-inv");
    EXPECT_STREQ(ibv_wr_opcode_str(static_cast<ibv_wr_opcode>(15)), "atomic-write");
    EXPECT_STREQ(ibv_wr_opcode_str(static_cast<ibv_wr_opcode>(12)), "unknown");
}

TEST(KernelFormsTest, EachFieldOfAQueuePairIsCopied) {
    ib_uverbs_qp_attr from{};
    std::memset(&from, 0, sizeof(from));
    from.cur_qp_state = IBV_QPS_RTS;
    from.path_mtu = IBV_MTU_2048;
    from.qkey = 11;
    from.rq_psn = 12;
    from.sq_psn = 13;
    from.dest_qp_num = 14;
    from.max_inline_data = 15;
    from.ah_attr.grh.dgid[15] = 16;
    from.ah_attr.grh.traffic_class = 17;
    from.ah_attr.port_num = 18;
    from.alt_ah_attr.dlid = 19;
    from.max_rd_atomic = 20;
    from.min_rnr_timer = 21;
    from.timeout = 22;
    from.alt_timeout = 23;
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_ERR;
    ibv_copy_qp_attr_from_kern(&to, &from);
    EXPECT_EQ(to.qp_state, IBV_QPS_ERR);
    EXPECT_EQ(to.cur_qp_state, IBV_QPS_RTS);
    EXPECT_EQ(to.path_mtu, IBV_MTU_2048);
    EXPECT_EQ(to.qkey, 11U);
    EXPECT_EQ(to.rq_psn, 12U);
    EXPECT_EQ(to.sq_psn, 13U);
    EXPECT_EQ(to.dest_qp_num, 14U);
    EXPECT_EQ(to.cap.max_inline_data, 15U);
    EXPECT_EQ(to.ah_attr.grh.dgid.raw[15], 16);
    EXPECT_EQ(to.ah_attr.grh.traffic_class, 17);
    EXPECT_EQ(to.ah_attr.port_num, 18);
    EXPECT_EQ(to.alt_ah_attr.dlid, 19);
    EXPECT_EQ(to.max_rd_atomic, 20);
    EXPECT_EQ(to.min_rnr_timer, 21);
    EXPECT_EQ(to.timeout, 22);
    EXPECT_EQ(to.alt_timeout, 23);
}

TEST(KernelFormsTest, APathGoesThereAndBack) {
    ibv_sa_path_rec path{};
    path.dgid.raw[0] = 1;
    path.sgid.raw[15] = 2;
    path.dlid = 3;
    path.pkey = 4;
    path.mtu = 5;
    path.packet_life_time = 18;
    path.flow_label = 7;
    path.reversible = 1;
    ib_user_path_rec kernel{};
    ibv_copy_path_rec_to_kern(&kernel, &path);
    EXPECT_EQ(kernel.packet_life_time, 18);
    ibv_sa_path_rec back{};
    ibv_copy_path_rec_from_kern(&back, &kernel);
    EXPECT_EQ(back.dgid.raw[0], 1);
    EXPECT_EQ(back.sgid.raw[15], 2);
    EXPECT_EQ(back.dlid, 3);
    EXPECT_EQ(back.pkey, 4);
    EXPECT_EQ(back.mtu, 5);
    EXPECT_EQ(back.packet_life_time, 18);
    EXPECT_EQ(back.flow_label, 7U);
    EXPECT_EQ(back.reversible, 1);
}

TEST(SysfsTest, FilesAreReadWithoutTheEndOfTheLine) {
    std::string folder = testing::TempDir() + "cairn-sysfs-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    const std::string file = folder + "/state";
    FILE* const written = fopen(file.c_str(), "w");
    fputs("4: ACTIVE\n", written);
    fclose(written);
    std::array<char, 16> text{};
    EXPECT_EQ(ibv_read_sysfs_file(folder.c_str(), "state", text.data(), text.size()), 9);
    EXPECT_STREQ(text.data(), "4: ACTIVE");
    EXPECT_EQ(ibv_read_sysfs_file(folder.c_str(), "state", text.data(), 4), -1);
    EXPECT_EQ(ibv_read_sysfs_file(folder.c_str(), "nothing", text.data(), text.size()), -1);
    EXPECT_EQ(ibv_read_sysfs_file("/sys/class/infiniband/cairn0", "board_id", text.data(), text.size()), 5);
    EXPECT_STREQ(text.data(), "CAIRN");
    EXPECT_STREQ(ibv_get_sysfs_path(), "/sys");
    unlink(file.c_str());
    rmdir(folder.c_str());
}

}  // namespace
}  // namespace cairn::ibverbs
