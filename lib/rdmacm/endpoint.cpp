#include "lib/rdmacm/endpoint.hpp"

#include <algorithm>
#include <cerrno>

#include "lib/ibverbs/translate.hpp"
#include "lib/roce/qp/limits.hpp"

namespace cairn::rdmacm {

namespace {

constexpr unsigned kPeerWrites = IBV_ACCESS_REMOTE_WRITE;
constexpr unsigned kPeerReads = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

[[nodiscard]] std::uint8_t depth_of(std::uint8_t wanted) noexcept {
    return static_cast<std::uint8_t>(std::min<std::uint32_t>(wanted, roce::kMaxRdAtomic));
}

void write_init(const Endpoint& endpoint, ibv_qp_attr& out, int& mask) noexcept {
    mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    out.port_num = 1;
    if (endpoint.is_datagrams()) {
        mask |= IBV_QP_QKEY;
        out.qkey = RDMA_UDP_QKEY;
        return;
    }
    mask |= IBV_QP_ACCESS_FLAGS;
    if (endpoint.parameters) {
        out.qp_access_flags = kPeerWrites | (endpoint.parameters->max_dest_rd_atomic != 0 ? kPeerReads : 0U);
    }
}

void write_rtr(const Endpoint& endpoint, ibv_qp_attr& out, int& mask) noexcept {
    const cm::QpParameters& peer = *endpoint.parameters;
    mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    out.ah_attr = way_to(endpoint, endpoint.remote.address);
    out.path_mtu = ibverbs::mtu_of(peer.path_mtu_bytes);
    out.dest_qp_num = peer.remote_qpn.value;
    out.rq_psn = endpoint.receive_psn.value();
    if (endpoint.type == IBV_QPT_RC || endpoint.type == IBV_QPT_XRC_RECV) {
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        out.max_dest_rd_atomic = depth_of(peer.max_dest_rd_atomic);
        out.min_rnr_timer = 0;
    }
}

void write_rts(const Endpoint& endpoint, ibv_qp_attr& out, int& mask) noexcept {
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (endpoint.is_datagrams()) {
        return;
    }
    const cm::QpParameters& peer = *endpoint.parameters;
    out.sq_psn = peer.send_psn.value();
    if (endpoint.type == IBV_QPT_RC || endpoint.type == IBV_QPT_XRC_SEND || endpoint.type == IBV_QPT_XRC_RECV) {
        mask |= IBV_QP_TIMEOUT;
        out.timeout = endpoint.options.ack_timeout.value_or(std::max(peer.ack_timeout.value, kThereAndBack));
    }
    if (endpoint.type == IBV_QPT_RC || endpoint.type == IBV_QPT_XRC_SEND) {
        mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
        out.retry_cnt = peer.retry_count.value;
        out.rnr_retry = peer.rnr_retry.value;
        out.max_rd_atomic = depth_of(peer.max_rd_atomic);
    }
}

}  // namespace

Held::Held(Endpoint& endpoint) : calls_(endpoint.calls) {
    if (endpoint.device != nullptr) {
        adapter_ = std::unique_lock(endpoint.device->adapter().lock());
    }
}

bool has_peer(const Endpoint& endpoint) noexcept {
    return endpoint.state != State::Bound && endpoint.state != State::Listening;
}

bool has_route(const Endpoint& endpoint) noexcept {
    return has_peer(endpoint) && endpoint.state != State::AddressResolved;
}

int init_attributes(Endpoint& endpoint, ibv_qp_attr& wanted, int& mask) {
    const Held held(endpoint);
    const ibv_qp_state to = wanted.qp_state;
    if (endpoint.device == nullptr) {
        return EINVAL;
    }
    wanted = {};
    wanted.qp_state = to;
    if (to == IBV_QPS_INIT) {
        write_init(endpoint, wanted, mask);
        return 0;
    }
    if (endpoint.is_datagrams() && to == IBV_QPS_RTR) {
        mask = IBV_QP_STATE;
        return 0;
    }
    if (!endpoint.is_datagrams() && !endpoint.parameters) {
        return EINVAL;
    }
    if (to == IBV_QPS_RTR) {
        write_rtr(endpoint, wanted, mask);
        return 0;
    }
    if (to == IBV_QPS_RTS) {
        write_rts(endpoint, wanted, mask);
        return 0;
    }
    return EINVAL;
}

}  // namespace cairn::rdmacm
