// The part of an rdma_cm_id that librdmacm adds to an endpoint.
#pragma once

#include <infiniband/sa.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "lib/ibverbs/complaints.hpp"
#include "lib/rdmacm/endpoint.hpp"

namespace cairn::rdmacm {

struct Id : rdma_cm_id {
    explicit Id(OwnedEndpoint of) noexcept : rdma_cm_id{}, endpoint(std::move(of)) {
        ps = endpoint->space;
        qp_type = endpoint->type;
        endpoint->id = this;
    }
    [[nodiscard]] static Id& of(rdma_cm_id* id) noexcept { return *static_cast<Id*>(id); }

    OwnedEndpoint endpoint;
    bool is_synchronous = false;  // its channel is its own; calls wait for their events
    bool failed = false;          // its queue pair did not take the connection; events that follow are dropped
    std::uint8_t initiator_depth = 0;
    std::uint8_t responder_resources = 0;
    ibv_ece local_ece{};
    ibv_ece remote_ece{};
    std::unique_ptr<ibv_qp_init_attr> wanted_qp;  // of ids that come by get_request()
    std::vector<std::uint8_t> connect_data;       // in front of the private data of connect()
    ibv_sa_path_rec path{};
};

// Does what rdma_create_id() does, for a queue pair of any type.
[[nodiscard]] int create_id(rdma_event_channel* channel, rdma_cm_id** out, void* context, rdma_port_space space,
                            ibv_qp_type type);
// Makes the id of a request. Needs the EventLock.
[[nodiscard]] Id* adopt(OwnedEndpoint asked, const Id& listener);
// Copies the ends, the device and the route to where programs look.
void refresh(Id& id);
// Waits for the event that ends a synchronous call. Returns 0; -1, with errno. A cancellation point.
[[nodiscard]] int complete(Id& id);
// Moves the id's queue pair, if it has one. Each returns 0; -1, with errno.
[[nodiscard]] int bring_up(Id& id, std::uint8_t responder_resources, std::uint8_t initiator_depth);
int stop(Id& id);

// Sets errno and returns -1 unless the reason is 0.
inline int result_of(int reason) noexcept {
    if (reason == 0) {
        return 0;
    }
    errno = reason;
    return -1;
}
// Runs `work`, which returns an errno value. No exception leaves it.
template <class Work>
int guarded(Work&& work) noexcept {
    try {
        return result_of(work());
    } catch (...) {  // bad_alloc, or an exception that the standard library made of it
        ibverbs::complain_of_memory();
        return result_of(ENOMEM);
    }
}

}  // namespace cairn::rdmacm
