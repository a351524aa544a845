// REQ: asks for a connection (IBTA vol. 1, 12.6.5).
#pragma once

#include "lib/base/endian.hpp"
#include "lib/wire/cm_types.hpp"
#include "lib/wire/mad.hpp"

namespace cairn::wire {

enum class TransportService : std::uint8_t { Rc = 0, Uc = 1, Rd = 2, Extended = 3 };
// The kind of Extended service (annex A14).
constexpr std::uint8_t kExtendedXrc = 1;

struct RawCmPath {
    Be16 local_lid;
    Be16 remote_lid;
    Gid local_gid;
    Gid remote_gid;
    Be24 flow_label;    // flow label 20, reserved 4
    std::uint8_t rate;  // reserved 2, rate 6
    std::uint8_t traffic_class;
    std::uint8_t hop_limit;
    std::uint8_t level;        // SL 4, subnet local 1, reserved 3
    std::uint8_t ack_timeout;  // 5, reserved 3
};
static_assert(sizeof(RawCmPath) == 44 && alignof(RawCmPath) == 1);

// A path between the two ports, seen from the sender.
struct CmPath {
    std::uint16_t local_lid = 0;  // with RoCE 0xffff, which no port has
    std::uint16_t remote_lid = 0;
    Gid local_gid{};
    Gid remote_gid{};
    FlowLabel flow_label{};
    PacketRate rate{};
    std::uint8_t traffic_class = 0;
    std::uint8_t hop_limit = 0;
    ServiceLevel level{};
    bool subnet_local = false;
    CmTimeout ack_timeout{};  // for the receiver's queue pair: twice the path's delay plus the sender's own

    [[nodiscard]] static CmPath parse(const RawCmPath& raw) noexcept;
    void emit(RawCmPath& raw) const noexcept;

    friend bool operator==(const CmPath&, const CmPath&) noexcept = default;
};

struct RawReq {
    Be32 local_comm_id;
    Be32 reserved4;
    Be64 service_id;
    Be64 local_ca_guid;
    Be32 reserved24;
    Be32 local_qkey;
    Be24 local_qpn;
    std::uint8_t responder_resources;
    Be24 local_eecn;
    std::uint8_t initiator_depth;
    Be24 remote_eecn;
    std::uint8_t remote_timeout;  // remote CM response timeout 5, transport service 2, end-to-end flow control 1
    Be24 starting_psn;
    std::uint8_t local_timeout;  // local CM response timeout 5, retry count 3
    Be16 pkey;
    std::uint8_t mtu;      // path MTU 4, RDC exists 1, RNR retry count 3
    std::uint8_t retries;  // max CM retries 4, SRQ 1, extended transport 3
    RawCmPath primary;
    RawCmPath alternate;
    PrivateData<92> private_data;
};
static_assert(sizeof(RawReq) == kMadBytes - MadHeader::kBytes && alignof(RawReq) == 1);

struct Req {
    using Raw = RawReq;
    static constexpr std::uint16_t kAttribute = 0x0010;

    CommId local_comm_id{};
    ServiceId service_id{};
    std::uint64_t local_ca_guid = 0;
    Qkey local_qkey{};
    Qpn local_qpn{};
    std::uint8_t responder_resources = 0;  // READs and atomics that the sender answers at a time
    std::uint8_t initiator_depth = 0;      // READs and atomics that the sender has outstanding at most
    Eecn local_eecn{};
    Eecn remote_eecn{};
    CmTimeout remote_response_timeout{};  // time in which the receiver answers
    TransportService service = TransportService::Rc;
    bool flow_control = false;
    Psn starting_psn{};
    CmTimeout local_response_timeout{};  // time in which the sender answers a REP
    RetryCount retry_count{};
    Pkey pkey{0xffff};
    PathMtu path_mtu{};
    bool rdc_exists = false;
    RetryCount rnr_retry{};
    CmRetries max_cm_retries{};
    bool srq = false;
    std::uint8_t extended_transport = 0;  // [0, 7]; kExtendedXrc if the service is Extended
    CmPath primary{};
    CmPath alternate{};  // all zero: no alternate path
    PrivateData<92> private_data{};

    [[nodiscard]] static ParsedMad<Req> parse(const Raw& raw) noexcept;
    void emit(Raw& raw) const noexcept;

    friend bool operator==(const Req&, const Req&) noexcept = default;
};

}  // namespace cairn::wire
