// Connections of ids, as librdmacm makes them.
#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/ibverbs/exports.hpp"
#include "lib/rdmacm/exports.hpp"
#include "lib/rdmacm/id.hpp"
#include "lib/roce/qp/limits.hpp"

namespace cairn::rdmacm {

namespace {

constexpr auto kDeepest = static_cast<std::uint8_t>(cairn::roce::kMaxRdAtomic);
constexpr std::uint8_t kVendorOptionRefused = 35;  // the reason of a REJ (12.6.7.2)

// Moves the queue pair to the state. Returns 0; -1, with errno.
[[nodiscard]] int move_to(Id& id, ibv_qp_state state, const auto& change) {
    ibv_qp_attr attributes{};
    int mask = 0;
    attributes.qp_state = state;
    const int refused = init_attributes(*id.endpoint, attributes, mask);
    if (refused != 0) {
        return result_of(refused);
    }
    change(attributes);
    return result_of(ibv_modify_qp(id.qp, &attributes, mask));
}

[[nodiscard]] bool is_possible(const Id& id, const rdma_conn_param* wanted) noexcept {
    if (id.ps != RDMA_PS_TCP) {
        return true;
    }
    if (wanted == nullptr) {
        return id.qp != nullptr;
    }
    return (wanted->responder_resources == RDMA_MAX_RESP_RES || wanted->responder_resources <= kDeepest) &&
           (wanted->initiator_depth == RDMA_MAX_INIT_DEPTH || wanted->initiator_depth <= kDeepest);
}

// Returns the program's parameters, completed from the id. `data` holds the private data.
[[nodiscard]] rdma_conn_param parameters_of(const Id& id, const rdma_conn_param* wanted,
                                            std::vector<std::uint8_t>& data) {
    constexpr std::uint8_t kRetries = 7;
    rdma_conn_param made{};
    made.retry_count = kRetries;
    made.rnr_retry_count = kRetries;
    data = id.connect_data;
    if (wanted != nullptr) {
        made = *wanted;
        const auto* const bytes = static_cast<const std::uint8_t*>(wanted->private_data);
        data.insert(data.end(), bytes, bytes + (bytes == nullptr ? 0 : wanted->private_data_len));
    }
    made.private_data = data.data();
    made.private_data_len = static_cast<std::uint8_t>(std::min<std::size_t>(data.size(), 0xff));
    made.responder_resources = id.responder_resources;
    made.initiator_depth = id.initiator_depth;
    if (id.qp != nullptr) {
        made.qp_num = id.qp->qp_num;
        made.srq = id.qp->srq != nullptr ? 1 : 0;
    }
    return made;
}

int reject_with(rdma_cm_id* id, const void* private_data, std::uint8_t bytes, std::uint8_t reason) {
    return guarded([&] {
        const auto* const from = static_cast<const std::uint8_t*>(private_data);
        return reject(*Id::of(id).endpoint, {from, from == nullptr ? std::size_t{0} : bytes}, reason);
    });
}

int join_group(rdma_cm_id* id, const sockaddr* address, bool sends_only, void* context) {
    const int refused = guarded([&] {
        const std::optional<End> group = end_of(address);
        return group ? join(*Id::of(id).endpoint, *group, sends_only, context) : EINVAL;
    });
    return refused != 0 ? refused : complete(Id::of(id));
}

}  // namespace

int bring_up(Id& id, std::uint8_t responder_resources, std::uint8_t initiator_depth) {
    if (id.qp == nullptr) {
        return 0;
    }
    const auto as_it_is = [](ibv_qp_attr&) noexcept {};
    const auto responds = [responder_resources](ibv_qp_attr& attributes) noexcept {
        if (responder_resources != RDMA_MAX_RESP_RES) {
            attributes.max_dest_rd_atomic = responder_resources;
        }
    };
    const auto initiates = [initiator_depth](ibv_qp_attr& attributes) noexcept {
        if (initiator_depth != RDMA_MAX_INIT_DEPTH) {
            attributes.max_rd_atomic = initiator_depth;
        }
    };
    const bool moved = move_to(id, IBV_QPS_INIT, as_it_is) == 0 && move_to(id, IBV_QPS_RTR, responds) == 0 &&
                       move_to(id, IBV_QPS_RTS, initiates) == 0;
    return moved ? 0 : -1;
}

int stop(Id& id) {
    if (id.qp == nullptr) {
        return 0;
    }
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    return result_of(ibv_modify_qp(id.qp, &attributes, IBV_QP_STATE));
}

}  // namespace cairn::rdmacm

using namespace cairn::rdmacm;

int cairn_rdma_listen(rdma_cm_id* id, int backlog) {
    return guarded([&] {
        const int refused = listen(*Id::of(id).endpoint, backlog);
        if (refused == 0) {
            refresh(Id::of(id));
        }
        return refused;
    });
}

int cairn_rdma_connect(rdma_cm_id* id, rdma_conn_param* wanted) {
    Id& of = Id::of(id);
    const int refused = guarded([&] {
        if (!is_possible(of, wanted)) {
            return EINVAL;
        }
        of.initiator_depth = kDeepest;
        of.responder_resources = kDeepest;
        if (wanted != nullptr && wanted->initiator_depth != RDMA_MAX_INIT_DEPTH) {
            of.initiator_depth = wanted->initiator_depth;
        }
        if (wanted != nullptr && wanted->responder_resources != RDMA_MAX_RESP_RES) {
            of.responder_resources = wanted->responder_resources;
        }
        std::vector<std::uint8_t> data;
        const int reason = connect(*of.endpoint, parameters_of(of, wanted, data));
        if (reason == 0) {
            of.connect_data.clear();
        }
        return reason;
    });
    return refused != 0 ? refused : complete(of);
}

int cairn_rdma_accept(rdma_cm_id* id, rdma_conn_param* wanted) {
    Id& of = Id::of(id);
    const bool datagrams = of.endpoint->is_datagrams();
    const int refused = guarded([&] {
        const NoCancellation whole;
        if (!is_possible(of, wanted) || (id->qp == nullptr && wanted == nullptr)) {
            return EINVAL;
        }
        const auto narrowed = [](std::uint8_t ours, const rdma_conn_param* param, std::uint8_t said) {
            return param == nullptr || said == 0xff ? std::min(ours, kDeepest) : said;
        };
        of.initiator_depth =
            narrowed(of.initiator_depth, wanted, wanted == nullptr ? std::uint8_t{0} : wanted->initiator_depth);
        of.responder_resources =
            narrowed(of.responder_resources, wanted, wanted == nullptr ? std::uint8_t{0} : wanted->responder_resources);
        if (!datagrams && bring_up(of, of.responder_resources, of.initiator_depth) != 0) {
            return errno;
        }
        std::vector<std::uint8_t> data;
        const int reason = accept(*of.endpoint, parameters_of(of, wanted, data));
        if (reason != 0) {
            stop(of);
        }
        return reason;
    });
    if (refused != 0) {
        return refused;
    }
    if (datagrams) {
        if (of.is_synchronous && id->event != nullptr) {
            cairn_rdma_ack_cm_event(std::exchange(id->event, nullptr));
        }
        return 0;
    }
    return complete(of);
}

int cairn_rdma_reject(rdma_cm_id* id, const void* private_data, std::uint8_t bytes) {
    return reject_with(id, private_data, bytes, 0);
}

int cairn_rdma_reject_ece(rdma_cm_id* id, const void* private_data, std::uint8_t bytes) {
    return reject_with(id, private_data, bytes, kVendorOptionRefused);
}

int cairn_rdma_establish(rdma_cm_id* id) {
    return guarded([id] { return id->qp != nullptr ? EINVAL : establish(*Id::of(id).endpoint); });
}

int cairn_rdma_notify(rdma_cm_id* id, ibv_event_type event) {
    return guarded([&] { return notify(*Id::of(id).endpoint, event); });
}

int cairn_rdma_disconnect(rdma_cm_id* id) {
    const int refused = guarded([id] {
        const NoCancellation whole;
        if (id->verbs == nullptr) {
            return EINVAL;
        }
        return stop(Id::of(id)) != 0 ? errno : disconnect(*Id::of(id).endpoint);
    });
    return refused != 0 ? refused : complete(Id::of(id));
}

int cairn_rdma_init_qp_attr(rdma_cm_id* id, ibv_qp_attr* attributes, int* mask) {
    return guarded([&] { return init_attributes(*Id::of(id).endpoint, *attributes, *mask); });
}

int cairn_rdma_join_multicast(rdma_cm_id* id, sockaddr* address, void* context) {
    return join_group(id, address, false, context);
}

int cairn_rdma_join_multicast_ex(rdma_cm_id* id, rdma_cm_join_mc_attr_ex* wanted, void* context) {
    constexpr std::uint32_t kNeeded = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
    if (wanted->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED) {
        return result_of(ENOTSUP);
    }
    if ((wanted->comp_mask & kNeeded) != kNeeded || wanted->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED) {
        return result_of(EINVAL);
    }
    return join_group(id, wanted->addr, wanted->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, context);
}

int cairn_rdma_leave_multicast(rdma_cm_id* id, sockaddr* address) {
    return guarded([&] {
        const NoCancellation whole;
        const std::optional<End> end = end_of(address);
        if (!end) {
            return EINVAL;
        }
        Endpoint& endpoint = *Id::of(id).endpoint;
        Group* const group = find_group(endpoint, *end);
        if (group == nullptr) {
            return EADDRNOTAVAIL;
        }
        if (id->qp != nullptr && !group->sends_only) {
            const ibv_gid gid = way_to(endpoint, group->end.address).grh.dgid;
            ibv_detach_mcast(id->qp, &gid, 0);
        }
        leave(endpoint, *group);
        return 0;
    });
}

int cairn_rdma_set_local_ece(rdma_cm_id* id, ibv_ece* ece) {
    if (id == nullptr || id->qp != nullptr || ece == nullptr || ece->vendor_id == 0 || ece->comp_mask != 0) {
        return result_of(EINVAL);
    }
    Id::of(id).local_ece = *ece;
    return 0;
}

int cairn_rdma_get_remote_ece(rdma_cm_id* id, ibv_ece* ece) {
    if (id == nullptr || id->qp != nullptr || ece == nullptr) {
        return result_of(EINVAL);
    }
    *ece = Id::of(id).remote_ece;
    return 0;
}
