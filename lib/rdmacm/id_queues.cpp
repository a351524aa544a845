// Queue pairs, receive queues and completion queues that belong to ids.
#include <cstring>
#include <utility>

#include "lib/ibverbs/exports.hpp"
#include "lib/rdmacm/exports.hpp"
#include "lib/rdmacm/id.hpp"

namespace cairn::rdmacm {

namespace {

void destroy_cqs(rdma_cm_id& id) noexcept {
    if (id.qp_type == IBV_QPT_XRC_RECV && id.srq != nullptr) {
        return;
    }
    for (ibv_cq** const cq : {&id.recv_cq, &id.send_cq}) {
        if (ibv_cq* const ended = std::exchange(*cq, nullptr)) {
            ibv_destroy_cq(ended);
        }
    }
    for (ibv_comp_channel** const channel : {&id.recv_cq_channel, &id.send_cq_channel}) {
        if (ibv_comp_channel* const ended = std::exchange(*channel, nullptr)) {
            ibv_destroy_comp_channel(ended);
        }
    }
}

[[nodiscard]] bool make_cq(rdma_cm_id& id, std::uint32_t slots, ibv_comp_channel*& channel, ibv_cq*& cq) noexcept {
    if (slots == 0) {
        return true;
    }
    channel = ibv_create_comp_channel(id.verbs);
    cq = channel == nullptr ? nullptr : ibv_create_cq(id.verbs, static_cast<int>(slots), &id, channel, 0);
    return cq != nullptr;
}

// Makes the completion queues of the id, except those of 0 slots. Returns false, with errno.
[[nodiscard]] bool make_cqs(rdma_cm_id& id, std::uint32_t send_slots, std::uint32_t receive_slots) noexcept {
    if (make_cq(id, receive_slots, id.recv_cq_channel, id.recv_cq) &&
        make_cq(id, send_slots, id.send_cq_channel, id.send_cq)) {
        return true;
    }
    const int reason = errno;
    destroy_cqs(id);
    errno = reason;
    return false;
}

// Brings a new queue pair as far as it goes without a peer. Returns an errno value.
[[nodiscard]] int begin(Id& id, ibv_qp& qp) {
    ibv_qp_attr attributes{};
    int mask = 0;
    attributes.qp_state = IBV_QPS_INIT;
    int refused = init_attributes(*id.endpoint, attributes, mask);
    refused = refused != 0 ? refused : ibv_modify_qp(&qp, &attributes, mask);
    if (refused != 0 || !id.endpoint->is_datagrams()) {
        return refused;
    }
    for (const ibv_qp_state state : {IBV_QPS_RTR, IBV_QPS_RTS}) {
        attributes.qp_state = state;
        refused = init_attributes(*id.endpoint, attributes, mask);
        refused = refused != 0 ? refused : ibv_modify_qp(&qp, &attributes, mask);
        if (refused != 0) {
            return refused;
        }
    }
    return 0;
}

// Completes the attributes that the program asked for from the id. Returns an errno value.
[[nodiscard]] int complete_wish(Id& id, ibv_qp_init_attr_ex& wanted) {
    if ((wanted.comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || wanted.pd == nullptr) {
        wanted.comp_mask |= IBV_QP_INIT_ATTR_PD;
        wanted.pd = id.pd;
    } else if (id.verbs != wanted.pd->context) {
        return EINVAL;
    }
    if ((id.recv_cq != nullptr && wanted.recv_cq != nullptr && id.recv_cq != wanted.recv_cq) ||
        (id.send_cq != nullptr && wanted.send_cq != nullptr && id.send_cq != wanted.send_cq)) {
        return EINVAL;
    }
    if (id.qp_type == IBV_QPT_XRC_RECV && ((wanted.comp_mask & IBV_QP_INIT_ATTR_XRCD) == 0 || wanted.xrcd == nullptr)) {
        wanted.xrcd = xrcd_of(*id.endpoint->device);
        wanted.comp_mask |= IBV_QP_INIT_ATTR_XRCD;
    }
    const bool has_send = wanted.send_cq != nullptr || id.send_cq != nullptr;
    const bool has_receive = wanted.recv_cq != nullptr || id.recv_cq != nullptr;
    if (!make_cqs(id, has_send ? 0 : wanted.cap.max_send_wr, has_receive ? 0 : wanted.cap.max_recv_wr)) {
        return errno;
    }
    wanted.send_cq = wanted.send_cq == nullptr ? id.send_cq : wanted.send_cq;
    wanted.recv_cq = wanted.recv_cq == nullptr ? id.recv_cq : wanted.recv_cq;
    wanted.srq = wanted.srq == nullptr ? id.srq : wanted.srq;
    return 0;
}

}  // namespace

}  // namespace cairn::rdmacm

using namespace cairn::rdmacm;

int cairn_rdma_create_qp_ex(rdma_cm_id* id, ibv_qp_init_attr_ex* wanted) {
    return guarded([&] {
        Id& of = Id::of(id);
        if (id->qp != nullptr || id->verbs == nullptr) {
            return EINVAL;
        }
        const int refused = complete_wish(of, *wanted);
        if (refused != 0) {
            return refused;
        }
        ibv_qp* const qp = cairn::ibverbs::create_qp_ex(id->verbs, wanted);
        if (qp == nullptr) {
            const int reason = errno;
            destroy_cqs(*id);
            return reason;
        }
        const int stuck = begin(of, *qp);
        if (stuck != 0) {
            ibv_destroy_qp(qp);
            destroy_cqs(*id);
            return stuck;
        }
        id->pd = qp->pd;
        id->qp = qp;
        return 0;
    });
}

int cairn_rdma_create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* wanted) {
    ibv_qp_init_attr_ex extended{};
    std::memcpy(static_cast<void*>(&extended), wanted, sizeof(*wanted));
    extended.comp_mask = IBV_QP_INIT_ATTR_PD;
    extended.pd = pd != nullptr ? pd : id->pd;
    const int refused = cairn_rdma_create_qp_ex(id, &extended);
    std::memcpy(static_cast<void*>(wanted), &extended, sizeof(*wanted));
    return refused;
}

void cairn_rdma_destroy_qp(rdma_cm_id* id) {
    ibv_destroy_qp(std::exchange(id->qp, nullptr));
    destroy_cqs(*id);
}

int cairn_rdma_create_srq_ex(rdma_cm_id* id, ibv_srq_init_attr_ex* wanted) {
    return guarded([&] {
        const auto lacks = [wanted](unsigned bit) noexcept { return (wanted->comp_mask & bit) == 0; };
        if (lacks(IBV_SRQ_INIT_ATTR_TYPE) || id->verbs == nullptr) {
            return EINVAL;
        }
        wanted->pd = lacks(IBV_SRQ_INIT_ATTR_PD) || wanted->pd == nullptr ? id->pd : wanted->pd;
        wanted->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
        if (wanted->srq_type == IBV_SRQT_XRC) {
            if (lacks(IBV_SRQ_INIT_ATTR_XRCD) || wanted->xrcd == nullptr) {
                wanted->xrcd = xrcd_of(*Id::of(id).endpoint->device);
            }
            if (lacks(IBV_SRQ_INIT_ATTR_CQ) || wanted->cq == nullptr) {
                if (!make_cqs(*id, 0, wanted->attr.max_wr)) {
                    return errno;
                }
                wanted->cq = id->recv_cq;
            }
            wanted->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
        }
        ibv_srq* const srq = cairn::ibverbs::create_srq_ex(id->verbs, wanted);
        if (srq == nullptr) {
            const int reason = errno;
            destroy_cqs(*id);
            return reason;
        }
        id->pd = id->pd == nullptr ? wanted->pd : id->pd;
        id->srq = srq;
        return 0;
    });
}

int cairn_rdma_create_srq(rdma_cm_id* id, ibv_pd* pd, ibv_srq_init_attr* wanted) {
    ibv_srq_init_attr_ex extended{};
    std::memcpy(static_cast<void*>(&extended), wanted, sizeof(*wanted));
    extended.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    extended.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
    extended.pd = pd;
    const int refused = cairn_rdma_create_srq_ex(id, &extended);
    std::memcpy(static_cast<void*>(wanted), &extended, sizeof(*wanted));
    return refused;
}

void cairn_rdma_destroy_srq(rdma_cm_id* id) {
    ibv_destroy_srq(std::exchange(id->srq, nullptr));
    destroy_cqs(*id);
}
