#include "lib/ibverbs/translate.hpp"

#include <array>
#include <cerrno>
#include <utility>

namespace cairn::ibverbs {

namespace {

template <class From, class To, std::size_t count>
using Pairs = std::array<std::pair<From, To>, count>;

constexpr Pairs<roce::QpState, ibv_qp_state, 7> kStates{{
    {roce::QpState::Reset, IBV_QPS_RESET},
    {roce::QpState::Init, IBV_QPS_INIT},
    {roce::QpState::Rtr, IBV_QPS_RTR},
    {roce::QpState::Rts, IBV_QPS_RTS},
    {roce::QpState::Sqd, IBV_QPS_SQD},
    {roce::QpState::Sqe, IBV_QPS_SQE},
    {roce::QpState::Err, IBV_QPS_ERR},
}};

constexpr Pairs<ibv_wr_opcode, roce::WorkOpcode, 11> kWork{{
    {IBV_WR_RDMA_WRITE, roce::WorkOpcode::RdmaWrite},
    {IBV_WR_RDMA_WRITE_WITH_IMM, roce::WorkOpcode::RdmaWriteWithImmediate},
    {IBV_WR_SEND, roce::WorkOpcode::Send},
    {IBV_WR_SEND_WITH_IMM, roce::WorkOpcode::SendWithImmediate},
    {IBV_WR_RDMA_READ, roce::WorkOpcode::RdmaRead},
    {IBV_WR_ATOMIC_CMP_AND_SWP, roce::WorkOpcode::CompareSwap},
    {IBV_WR_ATOMIC_FETCH_AND_ADD, roce::WorkOpcode::FetchAdd},
    {IBV_WR_LOCAL_INV, roce::WorkOpcode::LocalInvalidate},
    {IBV_WR_BIND_MW, roce::WorkOpcode::BindWindow},
    {IBV_WR_SEND_WITH_INV, roce::WorkOpcode::SendWithInvalidate},
    {IBV_WR_ATOMIC_WRITE, roce::WorkOpcode::AtomicWrite},
}};

constexpr Pairs<unsigned, roce::Right, 5> kRights{{
    {IBV_ACCESS_LOCAL_WRITE, roce::Right::LocalWrite},
    {IBV_ACCESS_REMOTE_WRITE, roce::Right::RemoteWrite},
    {IBV_ACCESS_REMOTE_READ, roce::Right::RemoteRead},
    {IBV_ACCESS_REMOTE_ATOMIC, roce::Right::RemoteAtomic},
    {IBV_ACCESS_MW_BIND, roce::Right::BindWindow},
}};
constexpr unsigned kHints =
    IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE;

}  // namespace

ibv_wc_status status_of(roce::CompletionStatus status) noexcept {
    switch (status) {
        case roce::CompletionStatus::Success:
            return IBV_WC_SUCCESS;
        case roce::CompletionStatus::LocalLength:
            return IBV_WC_LOC_LEN_ERR;
        case roce::CompletionStatus::LocalProtection:
            return IBV_WC_LOC_PROT_ERR;
        case roce::CompletionStatus::Flushed:
            return IBV_WC_WR_FLUSH_ERR;
        case roce::CompletionStatus::BadResponse:
            return IBV_WC_BAD_RESP_ERR;
        case roce::CompletionStatus::RemoteInvalidRequest:
            return IBV_WC_REM_INV_REQ_ERR;
        case roce::CompletionStatus::RemoteAccess:
            return IBV_WC_REM_ACCESS_ERR;
        case roce::CompletionStatus::RemoteOperation:
            return IBV_WC_REM_OP_ERR;
        case roce::CompletionStatus::RetryExceeded:
            return IBV_WC_RETRY_EXC_ERR;
        case roce::CompletionStatus::RnrRetryExceeded:
            return IBV_WC_RNR_RETRY_EXC_ERR;
        case roce::CompletionStatus::LocalQpOperation:
            return IBV_WC_LOC_QP_OP_ERR;
        case roce::CompletionStatus::MemoryManagement:
            return IBV_WC_MW_BIND_ERR;
    }
    return IBV_WC_GENERAL_ERR;
}

ibv_wc_opcode opcode_of(roce::CompletionOpcode opcode) noexcept {
    switch (opcode) {
        case roce::CompletionOpcode::Send:
            return IBV_WC_SEND;
        case roce::CompletionOpcode::RdmaWrite:
        case roce::CompletionOpcode::Flush:  // no request of this library makes one
            return IBV_WC_RDMA_WRITE;
        case roce::CompletionOpcode::RdmaRead:
            return IBV_WC_RDMA_READ;
        case roce::CompletionOpcode::CompareSwap:
            return IBV_WC_COMP_SWAP;
        case roce::CompletionOpcode::FetchAdd:
            return IBV_WC_FETCH_ADD;
        case roce::CompletionOpcode::Receive:
            return IBV_WC_RECV;
        case roce::CompletionOpcode::ReceiveRdmaWithImmediate:
            return IBV_WC_RECV_RDMA_WITH_IMM;
        case roce::CompletionOpcode::BindWindow:
            return IBV_WC_BIND_MW;
        case roce::CompletionOpcode::LocalInvalidate:
            return IBV_WC_LOCAL_INV;
        case roce::CompletionOpcode::AtomicWrite:
            return IBV_WC_ATOMIC_WRITE;
    }
    return IBV_WC_SEND;
}

unsigned flags_of(const roce::Completion& completion) noexcept {
    return (completion.has_grh ? unsigned{IBV_WC_GRH} : 0U) |
           (completion.has_immediate ? unsigned{IBV_WC_WITH_IMM} : 0U) |
           (completion.has_invalidate ? unsigned{IBV_WC_WITH_INV} : 0U);
}

int errno_of(roce::PostVerdict verdict) noexcept {
    return verdict == roce::PostVerdict::Posted ? 0 : verdict == roce::PostVerdict::QueueFull ? ENOMEM : EINVAL;
}

ibv_event_type event_of(roce::QpEvent event) noexcept {
    switch (event) {
        case roce::QpEvent::CommunicationEstablished:
            return IBV_EVENT_COMM_EST;
        case roce::QpEvent::SendQueueDrained:
            return IBV_EVENT_SQ_DRAINED;
        case roce::QpEvent::InvalidRequest:
            return IBV_EVENT_QP_REQ_ERR;
        case roce::QpEvent::AccessViolation:
            return IBV_EVENT_QP_ACCESS_ERR;
        case roce::QpEvent::LastWqeReached:
            return IBV_EVENT_QP_LAST_WQE_REACHED;
        case roce::QpEvent::Fatal:
        case roce::QpEvent::CqOverrun:
        case roce::QpEvent::Count:
            break;
    }
    return IBV_EVENT_QP_FATAL;
}

ibv_qp_state state_of(roce::QpState state) noexcept {
    for (const auto& [ours, theirs] : kStates) {
        if (ours == state) {
            return theirs;
        }
    }
    return IBV_QPS_UNKNOWN;
}

std::optional<roce::QpState> to_state(ibv_qp_state state) noexcept {
    for (const auto& [ours, theirs] : kStates) {
        if (theirs == state) {
            return ours;
        }
    }
    return std::nullopt;
}

std::optional<roce::WorkOpcode> to_opcode(ibv_wr_opcode opcode) noexcept {
    for (const auto& [theirs, ours] : kWork) {
        if (theirs == opcode) {
            return ours;
        }
    }
    return std::nullopt;
}

std::optional<roce::Rights> to_rights(unsigned access) noexcept {
    roce::Rights rights;
    for (const auto& [theirs, ours] : kRights) {
        if ((access & theirs) != 0) {
            rights = rights | ours;
        }
        access &= ~theirs;
    }
    return (access & ~kHints) == 0 ? std::optional(rights) : std::nullopt;
}

std::optional<roce::Rights> to_remote_rights(unsigned access) noexcept {
    constexpr unsigned kFlushes =
        3U << 8U;  // IBV_ACCESS_FLUSH_GLOBAL and _PERSISTENT of newer headers: no region has them
    const std::optional<roce::Rights> rights = to_rights(access & ~kFlushes);
    if (!rights) {
        return rights;
    }
    return rights->within(roce::Rights(roce::Right::RemoteWrite) | roce::Right::RemoteRead | roce::Right::RemoteAtomic);
}

unsigned access_of(roce::Rights rights) noexcept {
    unsigned access = 0;
    for (const auto& [theirs, ours] : kRights) {
        access |= rights.cover(ours) ? theirs : 0U;
    }
    return access;
}

std::uint32_t mtu_bytes(ibv_mtu mtu) noexcept {
    return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128U << static_cast<unsigned>(mtu) : 0;
}

ibv_mtu mtu_of(std::uint32_t bytes) noexcept {
    ibv_mtu mtu = IBV_MTU_256;
    while (mtu < IBV_MTU_4096 && mtu_bytes(static_cast<ibv_mtu>(mtu + 1)) <= bytes) {
        mtu = static_cast<ibv_mtu>(mtu + 1);
    }
    return mtu;
}

}  // namespace cairn::ibverbs
