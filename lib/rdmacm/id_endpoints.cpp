// Ids made of results of rdma_getaddrinfo(); requests, and the list of devices.
#include <cstdlib>
#include <utility>

#include "lib/rdmacm/exports.hpp"
#include "lib/rdmacm/id.hpp"

namespace cairn::rdmacm {

namespace {

constexpr int kResolveMilliseconds = 2000;

// Makes the id listen. Returns 0; -1, with errno.
[[nodiscard]] int prepare_listener(Id& id, const rdma_addrinfo& found, ibv_pd* pd, const ibv_qp_init_attr* wanted) {
    if (cairn_rdma_bind_addr(&id, found.ai_src_addr) != 0) {
        return -1;
    }
    id.pd = pd != nullptr ? pd : id.pd;
    if (wanted == nullptr) {
        return 0;
    }
    return guarded([&] {
        id.wanted_qp = std::make_unique<ibv_qp_init_attr>(*wanted);
        id.wanted_qp->qp_type = static_cast<ibv_qp_type>(found.ai_qp_type);
        return 0;
    });
}

[[nodiscard]] int prepare_client(Id& id, const rdma_addrinfo& found, ibv_pd* pd, ibv_qp_init_attr* wanted) {
    if (cairn_rdma_resolve_addr(&id, found.ai_src_addr, found.ai_dst_addr, kResolveMilliseconds) != 0) {
        return -1;
    }
    if (found.ai_route_len != 0) {
        if (cairn_rdma_set_option(&id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, found.ai_route, found.ai_route_len) != 0 ||
            complete(id) != 0) {
            return -1;
        }
    } else if (cairn_rdma_resolve_route(&id, kResolveMilliseconds) != 0) {
        return -1;
    }
    if (wanted != nullptr) {
        wanted->qp_type = static_cast<ibv_qp_type>(found.ai_qp_type);
        if (cairn_rdma_create_qp(&id, pd, wanted) != 0) {
            return -1;
        }
    }
    return guarded([&] {
        const auto* const data = static_cast<const std::uint8_t*>(found.ai_connect);
        id.connect_data.assign(data, data + found.ai_connect_len);
        return 0;
    });
}

// Returns 0 if the event is a request, else the reason as an errno value.
[[nodiscard]] int reason_against(const rdma_cm_event& event) noexcept {
    if (event.event == RDMA_CM_EVENT_REJECTED) {
        return ECONNREFUSED;
    }
    if (event.status != 0) {
        return -event.status;
    }
    return event.event == RDMA_CM_EVENT_CONNECT_REQUEST ? 0 : EINVAL;
}

}  // namespace

}  // namespace cairn::rdmacm

using namespace cairn::rdmacm;

int cairn_rdma_create_ep(rdma_cm_id** out, rdma_addrinfo* found, ibv_pd* pd, ibv_qp_init_attr* wanted) {
    rdma_cm_id* id = nullptr;
    const auto space = static_cast<rdma_port_space>(found->ai_port_space);
    if (create_id(nullptr, &id, nullptr, space, static_cast<ibv_qp_type>(found->ai_qp_type)) != 0) {
        return -1;
    }
    const bool listens = (found->ai_flags & RAI_PASSIVE) != 0;
    const int refused =
        listens ? prepare_listener(Id::of(id), *found, pd, wanted) : prepare_client(Id::of(id), *found, pd, wanted);
    if (refused != 0) {
        const int reason = errno;
        cairn_rdma_destroy_ep(id);
        return result_of(reason);
    }
    *out = id;
    return 0;
}

void cairn_rdma_destroy_ep(rdma_cm_id* id) {
    if (id->qp != nullptr) {
        cairn_rdma_destroy_qp(id);
    }
    if (id->srq != nullptr) {
        cairn_rdma_destroy_srq(id);
    }
    cairn_rdma_destroy_id(id);
}

int cairn_rdma_get_request(rdma_cm_id* listener, rdma_cm_id** out) {
    Id& of = Id::of(listener);
    if (!of.is_synchronous) {
        return result_of(EINVAL);
    }
    if (listener->event != nullptr) {
        cairn_rdma_ack_cm_event(std::exchange(listener->event, nullptr));
    }
    rdma_cm_event* event = nullptr;
    if (cairn_rdma_get_cm_event(listener->channel, &event) != 0) {
        return -1;
    }
    int refused = result_of(reason_against(*event));
    if (refused == 0 && of.wanted_qp != nullptr) {
        ibv_qp_init_attr wanted = *of.wanted_qp;
        refused = cairn_rdma_create_qp(event->id, listener->pd, &wanted);
    }
    if (refused != 0) {
        listener->event = event;
        return refused;
    }
    *out = event->id;
    event->id->event = event;
    return 0;
}

ibv_context** cairn_rdma_get_devices(int* count) {
    std::size_t devices = 0;
    ibv_context** list = nullptr;
    (void)guarded([&] {
        const std::vector<Device*> opened = open_all();
        if (opened.empty()) {
            return ENODEV;
        }
        list = static_cast<ibv_context**>(std::calloc(opened.size() + 1, sizeof(ibv_context*)));
        if (list == nullptr) {
            return ENOMEM;
        }
        for (Device* const each : opened) {
            list[devices++] = each->verbs;
        }
        return 0;
    });
    if (count != nullptr) {
        *count = static_cast<int>(devices);
    }
    return list;
}

// Frees the list. The devices stay open.
void cairn_rdma_free_devices(ibv_context** list) {
    std::free(list);
}
