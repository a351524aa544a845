// Modifies and queries a queue pair's state and attributes.
#include <array>

#include "lib/ibverbs/ah.hpp"
#include "lib/ibverbs/complaints.hpp"
#include "lib/ibverbs/exports.hpp"
#include "lib/ibverbs/guarded.hpp"
#include "lib/ibverbs/memory_faults.hpp"
#include "lib/ibverbs/qp.hpp"
#include "lib/ibverbs/translate.hpp"

namespace cairn::ibverbs {

namespace {

// The attributes of verbs.h, and the engine's attributes that they stand for. Others are judged here.
struct Known {
    unsigned bit;
    roce::Attribute attribute;
};
constexpr std::array<Known, 14> kKnown{{
    {IBV_QP_ACCESS_FLAGS, roce::Attribute::Access},
    {IBV_QP_PKEY_INDEX, roce::Attribute::Pkey},
    {IBV_QP_QKEY, roce::Attribute::Qkey},
    {IBV_QP_AV, roce::Attribute::Path},
    {IBV_QP_PATH_MTU, roce::Attribute::PathMtu},
    {IBV_QP_TIMEOUT, roce::Attribute::AckTimeout},
    {IBV_QP_RETRY_CNT, roce::Attribute::RetryCount},
    {IBV_QP_RNR_RETRY, roce::Attribute::RnrRetry},
    {IBV_QP_RQ_PSN, roce::Attribute::ReceivePsn},
    {IBV_QP_MAX_QP_RD_ATOMIC, roce::Attribute::MaxRdAtomic},
    {IBV_QP_MIN_RNR_TIMER, roce::Attribute::MinRnrTimer},
    {IBV_QP_SQ_PSN, roce::Attribute::SendPsn},
    {IBV_QP_MAX_DEST_RD_ATOMIC, roce::Attribute::MaxDestRdAtomic},
    {IBV_QP_DEST_QPN, roce::Attribute::DestQpn},
}};
constexpr unsigned kJudgedHere = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_PORT | IBV_QP_EN_SQD_ASYNC_NOTIFY |
                                 IBV_QP_PATH_MIG_STATE | IBV_QP_RATE_LIMIT;

[[nodiscard]] std::optional<roce::AttributeSet> to_attributes(unsigned mask) noexcept {
    roce::AttributeSet set;
    for (const Known& each : kKnown) {
        set = (mask & each.bit) != 0 ? set.with(roce::AttributeSet::of(each.attribute)) : set;
        mask &= ~each.bit;
    }
    return (mask & ~kJudgedHere) == 0 ? std::optional(set) : std::nullopt;
}

// Returns the attributes that the queue pair has. Each end of XRC has half of a connection's. Programs set all of them
// at both, as kernels allow.
[[nodiscard]] unsigned mask_for(ibv_qp_type type, unsigned mask) noexcept {
    constexpr unsigned kOfTargets = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    constexpr unsigned kOfInitiators = IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
    return mask & ~(type == IBV_QPT_XRC_SEND ? kOfTargets : type == IBV_QPT_XRC_RECV ? kOfInitiators : 0U);
}

// Judges a change. Returns an errno value.
[[nodiscard]] int judge(const Qp& qp, const ibv_qp_attr& wanted, unsigned mask) noexcept {
    const auto has = [mask](unsigned bit) noexcept { return (mask & bit) != 0; };
    const bool is_first =
        has(IBV_QP_STATE) && wanted.qp_state == IBV_QPS_INIT && qp.current_state() == roce::QpState::Reset;
    if ((is_first && !has(IBV_QP_PORT)) || (has(IBV_QP_PORT) && wanted.port_num != 1) ||
        (has(IBV_QP_PKEY_INDEX) && wanted.pkey_index != 0) ||
        (has(IBV_QP_CUR_STATE) && to_state(wanted.cur_qp_state) != qp.current_state())) {
        return EINVAL;
    }
    if ((has(IBV_QP_MAX_QP_RD_ATOMIC) && !is_within(Limit::Reads, wanted.max_rd_atomic)) ||
        (has(IBV_QP_MAX_DEST_RD_ATOMIC) && !is_within(Limit::AnsweredReads, wanted.max_dest_rd_atomic))) {
        return EINVAL;
    }
    return 0;
}

// Converts the values. Returns nullopt if one is invalid.
[[nodiscard]] std::optional<roce::QpAttributes> to_values(const ibv_qp_attr& from, unsigned mask) noexcept {
    const std::optional<roce::Rights> access = to_remote_rights(from.qp_access_flags);
    if ((mask & IBV_QP_ACCESS_FLAGS) != 0 && !access) {
        return std::nullopt;
    }
    roce::QpAttributes to;
    to.access = access.value_or(roce::Rights{});
    to.qkey = Qkey{from.qkey};
    to.path_mtu_bytes = mtu_bytes(from.path_mtu);
    to.ack_timeout = from.timeout;
    to.retry_count = from.retry_cnt;
    to.rnr_retry = from.rnr_retry;
    to.receive_psn = Psn{from.rq_psn};
    to.max_rd_atomic = from.max_rd_atomic;
    to.min_rnr_timer = wire::RnrTimer{from.min_rnr_timer};
    to.send_psn = Psn{from.sq_psn};
    to.max_dest_rd_atomic = from.max_dest_rd_atomic;
    to.dest_qpn = Qpn{from.dest_qp_num};
    return to;
}

void note_change(Qp& qp, const ibv_qp_attr& made, unsigned mask) noexcept {
    if ((mask & IBV_QP_AV) != 0) {
        qp.way = made.ah_attr;
    }
    if ((mask & IBV_QP_PORT) != 0) {
        qp.port = made.port_num;
    }
    qp.qp_base.state = state_of(qp.current_state());
}

// Notifies the planned failures of a queue pair that is ready. Throws bad_alloc.
void tell_planned_failures(Qp& qp) {
    PlannedFailures* const failures = Context::of(qp.qp_base.context).failures.get();
    if (failures == nullptr || qp.target != nullptr) {
        return;
    }
    const roce::QpState now = qp.current_state();
    if (now == roce::QpState::Rtr || now == roce::QpState::Rts) {
        failures->on_ready(qp);
    } else if (now == roce::QpState::Reset) {
        failures->forget(qp);
    }
}

// Modifies the queue pair. Needs the lock. Returns an errno value.
[[nodiscard]] int modify(Qp& qp, const ibv_qp_attr& wanted, unsigned mask, Adapter& adapter) {
    const std::optional<roce::AttributeSet> set = to_attributes(mask);
    const std::optional<roce::QpAttributes> values = to_values(wanted, mask);
    const std::optional<roce::QpState> to =
        (mask & IBV_QP_STATE) != 0 ? to_state(wanted.qp_state) : std::optional(qp.current_state());
    int reason = set && values && to ? judge(qp, wanted, mask) : EINVAL;
    if (reason != 0) {
        return reason;
    }
    port::Path* path = nullptr;
    if ((mask & IBV_QP_AV) != 0) {
        reason = open_path(adapter, wanted.ah_attr, path);
        if (reason != 0) {
            return reason;
        }
    }
    roce::Engine& engine = adapter.engine();
    std::optional<roce::ModifyRefusal> refusal;
    if (qp.is_datagrams()) {
        refusal = qp.datagrams->modify(*to, *set, *values);
    } else {
        refusal = engine.modify(*qp.connection, *to, *set, *values, path);
    }
    if (refusal) {
        return EINVAL;
    }
    wake(qp, engine);
    note_change(qp, wanted, mask);
    if (qp.target != nullptr) {
        for (Qp* const each : qp.target->holders) {
            note_change(*each, wanted, mask);
        }
    }
    tell_planned_failures(qp);
    return 0;
}

}  // namespace

}  // namespace cairn::ibverbs

using namespace cairn::ibverbs;

// A queue pair that goes to ERR or RESET answers no peer any more, so packets that its peer is owed leave first. A NAK
// that the change makes leaves before the call returns; requests that it flushes have completed by then.
int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* wanted, int mask) {
    return result_of([&] {
        if ((mask & IBV_QP_STATE) != 0 && wanted->qp_state == IBV_QPS_RTR) {
            catch_memory_faults();
        }
        Adapter& adapter = adapter_of(qp->context);
        const std::lock_guard hold(adapter.lock());
        if ((mask & IBV_QP_STATE) != 0 && (wanted->qp_state == IBV_QPS_ERR || wanted->qp_state == IBV_QPS_RESET)) {
            adapter.settle();
        }
        const int reason = modify(Qp::of(qp), *wanted, mask_for(qp->qp_type, static_cast<unsigned>(mask)), adapter);
        if (reason == 0) {
            adapter.settle();
        }
        return reason;
    });
}

int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* out, int, ibv_qp_init_attr* init) {
    Qp& of = Qp::of(qp);
    const std::lock_guard hold(adapter_of(qp->context).lock());
    const cairn::roce::QpAttributes from = of.is_datagrams() ? of.datagrams->attributes() : of.connection->pair.query();
    *out = {};
    qp->state = state_of(of.current_state());
    out->qp_state = qp->state;
    out->cur_qp_state = qp->state;
    out->path_mtu = mtu_of(from.path_mtu_bytes);
    out->path_mig_state = IBV_MIG_MIGRATED;
    out->qkey = from.qkey.value;
    out->rq_psn = from.receive_psn.value();
    out->sq_psn = from.send_psn.value();
    out->dest_qp_num = from.dest_qpn.value;
    out->qp_access_flags = access_of(from.access);
    out->cap = of.cap;
    out->ah_attr = of.way;
    out->max_rd_atomic = from.max_rd_atomic;
    out->max_dest_rd_atomic = from.max_dest_rd_atomic;
    out->min_rnr_timer = from.min_rnr_timer.value;
    out->port_num = of.port;
    out->timeout = from.ack_timeout;
    out->retry_cnt = from.retry_count;
    out->rnr_retry = from.rnr_retry;
    if (init != nullptr) {
        *init = {};
        init->qp_context = qp->qp_context;
        init->send_cq = qp->send_cq;
        init->recv_cq = qp->recv_cq;
        init->srq = qp->srq;
        init->cap = of.cap;
        init->qp_type = qp->qp_type;
        init->sq_sig_all = of.signals_all ? 1 : 0;
    }
    return 0;
}
