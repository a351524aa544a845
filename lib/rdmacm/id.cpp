// Ids: made, ended, bound and moved.
#include "lib/rdmacm/id.hpp"

#include <arpa/inet.h>

#include <cstring>
#include <utility>

#include "lib/ibverbs/ah.hpp"
#include "lib/ibverbs/translate.hpp"
#include "lib/rdmacm/exchange.hpp"
#include "lib/rdmacm/exports.hpp"

namespace cairn::rdmacm {

namespace {

[[nodiscard]] bool is_known(rdma_port_space space) noexcept {
    return space == RDMA_PS_TCP || space == RDMA_PS_UDP || space == RDMA_PS_IPOIB || space == RDMA_PS_IB;
}

[[nodiscard]] Id* make_id(rdma_event_channel* channel, void* context, rdma_port_space space, ibv_qp_type type) {
    OwnedEndpoint endpoint(new Endpoint(space, type, Channel::of(channel)));
    Id* const id = std::make_unique<Id>(std::move(endpoint)).release();
    id->channel = channel;
    id->context = context;
    return id;
}

}  // namespace

Id* adopt(OwnedEndpoint asked, const Id& listener) {
    Id* const id = std::make_unique<Id>(std::move(asked)).release();
    id->channel = id->endpoint->channel;
    id->context = listener.context;
    return id;
}

void refresh(Id& id) {
    Endpoint& from = *id.endpoint;
    const Held held(from);
    rdma_addr& to = id.route.addr;
    write_end(from.local, to.src_storage);
    if (has_peer(from)) {
        write_end(from.remote, to.dst_storage);
    }
    if (from.device == nullptr) {
        return;
    }
    id.verbs = from.device->verbs;
    id.pd = id.pd == nullptr ? from.device->pd : id.pd;
    id.port_num = 1;
    to.addr.ibaddr.sgid = ibverbs::to_gid(from.local.address);
    to.addr.ibaddr.dgid = ibverbs::to_gid(from.remote.address);
    to.addr.ibaddr.pkey = htons(0xffff);
    if (has_route(from)) {
        id.path = path_of(from);
        id.route.path_rec = &id.path;
        id.route.num_paths = 1;
    }
}

int create_id(rdma_event_channel* channel, rdma_cm_id** out, void* context, rdma_port_space space, ibv_qp_type type) {
    if (ibverbs::all_devices().empty()) {
        return result_of(ENODEV);
    }
    rdma_event_channel* const on = channel == nullptr ? cairn_rdma_create_event_channel() : channel;
    if (on == nullptr) {
        return -1;
    }
    const int made = guarded([&] {
        if (!is_known(space)) {
            return EINVAL;
        }
        Id* const id = make_id(on, context, space, type);
        id->is_synchronous = channel == nullptr;
        *out = id;
        return 0;
    });
    if (made != 0 && channel == nullptr) {
        const int reason = errno;
        cairn_rdma_destroy_event_channel(on);
        errno = reason;
    }
    return made;
}

}  // namespace cairn::rdmacm

using namespace cairn::rdmacm;

int cairn_rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space space) {
    const bool datagrams = space == RDMA_PS_UDP || space == RDMA_PS_IPOIB;
    return create_id(channel, id, context, space, datagrams ? IBV_QPT_UD : IBV_QPT_RC);
}

int cairn_rdma_destroy_id(rdma_cm_id* id) {
    const NoCancellation whole;
    Id& ended = Id::of(id);
    end(*ended.endpoint);
    if (id->event != nullptr) {
        cairn_rdma_ack_cm_event(id->event);
    }
    {
        EventLock hold;
        while (ended.endpoint->events.acknowledged != ended.endpoint->events.given) {
            hold.await_acknowledgement();
        }
    }
    rdma_event_channel* const own = ended.is_synchronous ? id->channel : nullptr;
    delete &ended;
    if (own != nullptr) {
        cairn_rdma_destroy_event_channel(own);
    }
    return 0;
}

int cairn_rdma_bind_addr(rdma_cm_id* id, sockaddr* address) {
    return guarded([&] {
        const std::optional<End> local = end_of(address);
        const int refused = local ? bind(*Id::of(id).endpoint, *local) : EINVAL;
        if (refused == 0) {
            refresh(Id::of(id));
        }
        return refused;
    });
}

int cairn_rdma_resolve_addr(rdma_cm_id* id, sockaddr* source, sockaddr* destination, int) {
    const int refused = guarded([&] {
        const std::optional<End> local = end_of(source);
        const std::optional<End> remote = end_of(destination);
        if (!remote || (source != nullptr && !local)) {
            return EINVAL;
        }
        const int reason = resolve_address(*Id::of(id).endpoint, local, *remote);
        if (reason == 0) {
            write_end(*remote, id->route.addr.dst_storage);
        }
        return reason;
    });
    return refused != 0 ? refused : complete(Id::of(id));
}

int cairn_rdma_resolve_route(rdma_cm_id* id, int) {
    const int refused = guarded([id] { return resolve_route(*Id::of(id).endpoint); });
    return refused != 0 ? refused : complete(Id::of(id));
}

int cairn_rdma_set_option(rdma_cm_id* id, int level, int name, void* value, std::size_t bytes) {
    return guarded([&] {
        const auto* const from = static_cast<const std::uint8_t*>(value);
        return set_option(*Id::of(id).endpoint, level, name, {from, from == nullptr ? 0 : bytes});
    });
}

// Moves the id to the channel. Without one it gets a channel of its own, which makes it synchronous.
int cairn_rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* channel) {
    const NoCancellation whole;
    Id& moved = Id::of(id);
    if (moved.is_synchronous && channel == nullptr) {
        return result_of(EINVAL);
    }
    rdma_event_channel* const to = channel == nullptr ? cairn_rdma_create_event_channel() : channel;
    if (to == nullptr) {
        return -1;
    }
    const int refused = guarded([&] {
        migrate(*moved.endpoint, Channel::of(to));
        return 0;
    });
    if (refused != 0) {
        return refused;
    }
    if (moved.is_synchronous) {
        if (id->event != nullptr) {
            cairn_rdma_ack_cm_event(std::exchange(id->event, nullptr));
        }
        cairn_rdma_destroy_event_channel(id->channel);
    }
    moved.is_synchronous = channel == nullptr;
    id->channel = to;
    EventLock hold;
    while (moved.endpoint->events.acknowledged != moved.endpoint->events.given) {
        hold.await_acknowledgement();
    }
    return 0;
}

__be16 cairn_rdma_get_src_port(rdma_cm_id* id) {
    const std::optional<End> end = end_of(&id->route.addr.src_addr);
    return htons(end ? end->port : std::uint16_t{0});
}

__be16 cairn_rdma_get_dst_port(rdma_cm_id* id) {
    const std::optional<End> end = end_of(&id->route.addr.dst_addr);
    return htons(end ? end->port : std::uint16_t{0});
}
