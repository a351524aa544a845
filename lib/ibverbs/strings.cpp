// Names of values, and rates.
#include <array>
#include <span>
#include <utility>

#include "lib/ibverbs/exports.hpp"
#include "lib/ibverbs/private_api.hpp"

namespace {

constexpr std::array<const char*, 24> kStatuses{
    "success",
    "local length error",
    "local QP operation error",
    "local EE context operation error",
    "local protection error",
    "Work Request Flushed Error",
    "memory management operation error",
    "bad response error",
    "local access error",
    "remote invalid request error",
    "remote access error",
    "remote operation error",
    "transport retry counter exceeded",
    "RNR retry counter exceeded",
    "local RDD violation error",
    "remote invalid RD request",
    "aborted error",
    "invalid EE context number",
    "invalid EE context state",
    "fatal error",
    "response timeout error",
    "general error",
    "TM error",
    "TM software rendezvous",
};

constexpr std::array<const char*, 20> kEvents{
    "CQ error",
    "local work queue catastrophic error",
    "invalid request local work queue error",
    "local access violation work queue error",
    "communication established",
    "send queue drained",
    "path migrated",
    "path migration request error",
    "local catastrophic error",
    "port active",
    "port error",
    "LID change",
    "P_Key change",
    "SM change",
    "SRQ catastrophic error",
    "SRQ limit reached",
    "last WQE reached",
    "client reregistration",
    "GID table change",
    "WQ fatal",
};

constexpr std::array<const char*, 6> kPortStates{
    "no state change (NOP)", "down", "init", "armed", "active", "active deferred",
};

constexpr std::array<const char*, 9> kNodeTypes{
    "unknown",      "InfiniBand channel adapter", "InfiniBand switch", "InfiniBand router", "iWARP NIC",
    "usNIC device", "usNIC UDP device",           "unspecified",       "unspecified",
};

constexpr std::array<const char*, 16> kOpcodes{
    "rdma-write",
    "rdma-write-with-imm",
    "send",
    "send-with-imm",
    "rdma-read",
    "atomic-cmp-and-swp",
    "atomic-fetch-and-add",
    "local-inv",
    "bind-mw",
    "send-with-inv",
    "tso",
    "driver1",
    "unknown",
    "unknown",
    "flush",
    "atomic-write",
};

const char* name_of(std::span<const char* const> names, int value) noexcept {
    return value >= 0 && static_cast<std::size_t>(value) < names.size() ? names[static_cast<std::size_t>(value)]
                                                                        : "unknown";
}

struct Rate {
    ibv_rate rate;
    int multiple;  // of 2.5 Gbit/s; -1: none
    int mbps;
};
constexpr std::array<Rate, 22> kRates{{
    {IBV_RATE_2_5_GBPS, 1, 2500},    {IBV_RATE_5_GBPS, 2, 5000},      {IBV_RATE_10_GBPS, 4, 10000},
    {IBV_RATE_20_GBPS, 8, 20000},    {IBV_RATE_30_GBPS, 12, 30000},   {IBV_RATE_40_GBPS, 16, 40000},
    {IBV_RATE_60_GBPS, 24, 60000},   {IBV_RATE_80_GBPS, 32, 80000},   {IBV_RATE_120_GBPS, 48, 120000},
    {IBV_RATE_14_GBPS, -1, 14062},   {IBV_RATE_56_GBPS, -1, 56250},   {IBV_RATE_112_GBPS, -1, 112500},
    {IBV_RATE_168_GBPS, -1, 168750}, {IBV_RATE_25_GBPS, -1, 25781},   {IBV_RATE_100_GBPS, -1, 103125},
    {IBV_RATE_200_GBPS, -1, 206250}, {IBV_RATE_300_GBPS, -1, 309375}, {IBV_RATE_28_GBPS, -1, 28125},
    {IBV_RATE_50_GBPS, -1, 53125},   {IBV_RATE_400_GBPS, -1, 425000}, {IBV_RATE_600_GBPS, -1, 637500},
    {IBV_RATE_MAX, -1, -1},
}};

template <class Field>
ibv_rate find_rate(int value, Field field) noexcept {
    for (const Rate& each : kRates) {
        if (each.*field == value && value > 0) {
            return each.rate;
        }
    }
    return IBV_RATE_MAX;
}

Rate look_up(ibv_rate rate) noexcept {
    for (const Rate& each : kRates) {
        if (each.rate == rate) {
            return each;
        }
    }
    return kRates.back();
}

}  // namespace

const char* ibv_wc_status_str(ibv_wc_status status) {
    return name_of(kStatuses, status);
}

const char* ibv_event_type_str(ibv_event_type event) {
    return name_of(kEvents, event);
}

const char* ibv_port_state_str(ibv_port_state state) {
    return name_of(kPortStates, state);
}

const char* ibv_node_type_str(ibv_node_type type) {
    return name_of(kNodeTypes, type);
}

const char* ibv_wr_opcode_str(ibv_wr_opcode opcode) {
    return name_of(kOpcodes, opcode);
}

int ibv_rate_to_mult(ibv_rate rate) {
    return look_up(rate).multiple;
}

ibv_rate mult_to_ibv_rate(int multiple) {
    return find_rate(multiple, &Rate::multiple);
}

int ibv_rate_to_mbps(ibv_rate rate) {
    return look_up(rate).mbps;
}

ibv_rate mbps_to_ibv_rate(int mbps) {
    return find_rate(mbps, &Rate::mbps);
}
