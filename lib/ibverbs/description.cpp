#include "lib/ibverbs/description.hpp"

#include <cstdio>
#include <cstring>

#include "lib/ibverbs/address_gids.hpp"
#include "lib/ibverbs/memory_rules.hpp"
#include "lib/roce/qp/limits.hpp"

namespace cairn::ibverbs {

namespace {

constexpr std::uint32_t kVendor = 0xffffff;  // as software adapters have; programs treat some vendors' specially
constexpr int kMostObjects = 1 << 16;
constexpr int kMostQps = 16384 - 512;

}  // namespace

__be64 guid_word(const net::IpAddress& address) noexcept {
    const auto octets = guid_of(address);
    __be64 guid = 0;
    std::memcpy(&guid, octets.data(), octets.size());
    return guid;
}

void describe_device(const DeviceConfig& device, ibv_device_attr& out) noexcept {
    out = {};
    std::snprintf(out.fw_ver, sizeof(out.fw_ver), "%s", CAIRN_VERSION);
    out.node_guid = guid_word(device.address);
    out.sys_image_guid = out.node_guid;
    out.max_mr_size = ~std::uint64_t{0};
    out.page_size_cap = 0xfffff000U;
    out.vendor_id = kVendor;
    out.vendor_part_id = 0;
    out.max_qp = kMostQps;
    out.max_qp_wr = roce::kMaxQueueSlots;
    out.device_cap_flags = IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_CURR_QP_STATE_MOD |
                           IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE |
                           IBV_DEVICE_N_NOTIFY_CQ | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
                           IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_XRC | IBV_DEVICE_UD_AV_PORT_ENFORCE;
    out.max_sge = roce::kMaxSges;
    out.max_sge_rd = roce::kMaxSges;
    out.max_cq = kMostObjects;
    out.max_cqe = roce::kMaxCompletionSlots;
    out.max_mr = roce::kMaxRegions;
    out.max_pd = kMostObjects;
    out.max_qp_rd_atom = roce::kMaxRdAtomic;
    out.max_res_rd_atom = static_cast<int>(roce::kMaxRdAtomic) * kMostQps;
    out.max_qp_init_rd_atom = roce::kMaxRdAtomic;
    out.atomic_cap = IBV_ATOMIC_HCA;
    out.max_mw = roce::kMaxRegions;
    out.max_mcast_grp = 256;
    out.max_mcast_qp_attach = 64;
    out.max_total_mcast_qp_attach = out.max_mcast_grp * out.max_mcast_qp_attach;
    out.max_ah = 1024;
    out.max_srq = kMostObjects;
    out.max_srq_wr = roce::kMaxQueueSlots;
    out.max_srq_sge = roce::kMaxSges;
    out.max_pkeys = 1;
    out.local_ca_ack_delay = 15;
    out.phys_port_cnt = 1;
}

void describe_extensions(ibv_device_attr_ex& out) noexcept {
    constexpr std::uint64_t kAtomicWrite = std::uint64_t{1} << 40U;  // IBV_DEVICE_ATOMIC_WRITE of newer headers
    constexpr std::uint32_t kMessages = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
    constexpr std::uint32_t kReliable =
        kMessages | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;
    out.device_cap_flags_ex = out.orig_attr.device_cap_flags | kAtomicWrite;
    out.odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
    out.odp_caps.per_transport_caps.rc_odp_caps = kReliable;
    out.odp_caps.per_transport_caps.uc_odp_caps = kMessages | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_SRQ_RECV;
    out.odp_caps.per_transport_caps.ud_odp_caps = kMessages | IBV_ODP_SUPPORT_SRQ_RECV;
    out.xrc_odp_caps = kReliable;
    out.cq_mod_caps = {0xffff, 0xffff};
    out.max_dm_size = kMostDeviceMemory;
}

void describe_port(ibv_port_attr& out) noexcept {
    out = {};
    out.state = IBV_PORT_ACTIVE;
    out.max_mtu = IBV_MTU_4096;
    out.gid_tbl_len = kGids;
    out.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
    out.max_msg_sz = roce::kMaxMessageBytes;
    out.pkey_tbl_len = 1;
    out.max_vl_num = 1;
    out.active_width = 2;   // 4x
    out.active_speed = 32;  // EDR: the rate that a socket reaches at best
    out.phys_state = 5;     // LinkUp
    out.link_layer = IBV_LINK_LAYER_ETHERNET;
    out.flags = IBV_QPF_GRH_REQUIRED;
}

}  // namespace cairn::ibverbs
