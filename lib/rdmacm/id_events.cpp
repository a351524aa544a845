// Event channels, and the effect of each event before a program gets it.
#include <array>
#include <utility>

#include "lib/ibverbs/exports.hpp"
#include "lib/ibverbs/guarded.hpp"
#include "lib/rdmacm/exports.hpp"
#include "lib/rdmacm/id.hpp"

namespace cairn::rdmacm {

namespace {

constexpr std::array kNames{
    "RDMA_CM_EVENT_ADDR_RESOLVED",  "RDMA_CM_EVENT_ADDR_ERROR",      "RDMA_CM_EVENT_ROUTE_RESOLVED",
    "RDMA_CM_EVENT_ROUTE_ERROR",    "RDMA_CM_EVENT_CONNECT_REQUEST", "RDMA_CM_EVENT_CONNECT_RESPONSE",
    "RDMA_CM_EVENT_CONNECT_ERROR",  "RDMA_CM_EVENT_UNREACHABLE",     "RDMA_CM_EVENT_REJECTED",
    "RDMA_CM_EVENT_ESTABLISHED",    "RDMA_CM_EVENT_DISCONNECTED",    "RDMA_CM_EVENT_DEVICE_REMOVAL",
    "RDMA_CM_EVENT_MULTICAST_JOIN", "RDMA_CM_EVENT_MULTICAST_ERROR", "RDMA_CM_EVENT_ADDR_CHANGE",
    "RDMA_CM_EVENT_TIMEWAIT_EXIT",
};
static_assert(kNames.size() == RDMA_CM_EVENT_TIMEWAIT_EXIT + 1);

// Takes the peer's reply with the id's own queue pair. Returns 0; -1, with errno.
[[nodiscard]] int take_reply(Id& id) {
    if (bring_up(id, RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH) != 0) {
        stop(id);
        return -1;
    }
    const int refused = result_of(establish(*id.endpoint));
    if (refused != 0) {
        stop(id);
    }
    return refused;
}

// Makes the id of a request ready for the program. Returns an errno value.
[[nodiscard]] int take_request(Event& event) {
    Id& id = Id::of(event.id);
    if (!id.endpoint->is_datagrams()) {
        id.initiator_depth = event.param.conn.initiator_depth;
        id.responder_resources = event.param.conn.responder_resources;
    }
    if (Id::of(event.listen_id).is_synchronous && cairn_rdma_migrate_id(&id, nullptr) != 0) {
        return errno;
    }
    refresh(id);
    return 0;
}

[[nodiscard]] int attach(Id& id, Event& event) {
    if (id.qp == nullptr || event.group->sends_only) {
        return 0;
    }
    return result_of(ibv_attach_mcast(id.qp, &event.param.ud.ah_attr.grh.dgid, 0));
}

// Applies the event to the id and its queue pair. Returns false if the program is not to get it.
[[nodiscard]] bool prepare(Event& event) {
    Id& id = Id::of(event.id);
    switch (event.event) {
        case RDMA_CM_EVENT_ADDR_RESOLVED:
        case RDMA_CM_EVENT_ROUTE_RESOLVED:
            refresh(id);
            return true;
        case RDMA_CM_EVENT_CONNECT_REQUEST:
            if (take_request(event) != 0) {
                cairn_rdma_destroy_id(&id);
                return false;
            }
            return true;
        case RDMA_CM_EVENT_CONNECT_RESPONSE:
            if (id.qp != nullptr) {
                event.status = take_reply(id);
                id.failed = event.status != 0;
                event.event = id.failed ? RDMA_CM_EVENT_CONNECT_ERROR : RDMA_CM_EVENT_ESTABLISHED;
            }
            return true;
        case RDMA_CM_EVENT_REJECTED:
            if (!id.failed) {
                stop(id);
            }
            return !id.failed;
        case RDMA_CM_EVENT_DISCONNECTED:
            return !id.failed;
        case RDMA_CM_EVENT_MULTICAST_JOIN:
            event.status = attach(id, event);
            event.event = event.status == 0 ? RDMA_CM_EVENT_MULTICAST_JOIN : RDMA_CM_EVENT_MULTICAST_ERROR;
            return true;
        case RDMA_CM_EVENT_ADDR_ERROR:
        case RDMA_CM_EVENT_ROUTE_ERROR:
        case RDMA_CM_EVENT_CONNECT_ERROR:
        case RDMA_CM_EVENT_UNREACHABLE:
        case RDMA_CM_EVENT_ESTABLISHED:
        case RDMA_CM_EVENT_DEVICE_REMOVAL:
        case RDMA_CM_EVENT_MULTICAST_ERROR:
        case RDMA_CM_EVENT_ADDR_CHANGE:
        case RDMA_CM_EVENT_TIMEWAIT_EXIT:
            break;
    }
    return true;
}

// Takes the next event. Returns an errno value; 0 without an event if there is none for the program yet.
[[nodiscard]] int take_prepared(Channel& channel, rdma_cm_event*& out) {
    const NoCancellation whole;
    std::unique_ptr<Event> event = take(channel);
    if (event == nullptr) {
        return 0;
    }
    if (!prepare(*event)) {
        acknowledge(std::move(event));
        return 0;
    }
    out = event.release();
    return 0;
}

}  // namespace

int complete(Id& id) {
    if (!id.is_synchronous) {
        return 0;
    }
    if (id.event != nullptr) {
        cairn_rdma_ack_cm_event(std::exchange(id.event, nullptr));
    }
    const int refused = cairn_rdma_get_cm_event(id.channel, &id.event);
    if (refused != 0 || id.event->status == 0) {
        return refused;
    }
    if (id.event->event == RDMA_CM_EVENT_REJECTED) {
        return result_of(ECONNREFUSED);
    }
    return result_of(id.event->status < 0 ? -id.event->status : id.event->status);
}

}  // namespace cairn::rdmacm

using namespace cairn::rdmacm;

rdma_event_channel* cairn_rdma_create_event_channel(void) {
    return cairn::ibverbs::make_or_null([]() -> rdma_event_channel* {
        if (cairn::ibverbs::all_devices().empty()) {
            return cairn::ibverbs::fail(ENODEV);
        }
        auto channel = std::make_unique<Channel>();
        if (!channel->count.open()) {
            return nullptr;
        }
        channel->fd = channel->count.fd;
        return channel.release();
    });
}

void cairn_rdma_destroy_event_channel(rdma_event_channel* channel) {
    Channel& ended = Channel::of(channel);
    ended.count.close();
    delete &ended;
}

// Is a cancellation point while it waits. It holds no lock then, and has no object with a destructor: a thread that is
// cancelled unwinds without one. An id that ended may have taken its event back after the descriptor counted it. Then
// there is none, and the call waits again. A program may cancel the thread and end the channel without joining it, so
// the thread tests for that before it looks at the channel. After the wait it has the count of an event, and no
// cancellation point comes before it has the event.
int cairn_rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
    if (event == nullptr) {
        return result_of(EINVAL);
    }
    rdma_cm_event* taken = nullptr;
    while (taken == nullptr) {
        pthread_testcancel();
        if (!Channel::of(channel).count.wait()) {
            return -1;
        }
        const int refused = guarded([&] { return take_prepared(Channel::of(channel), taken); });
        if (refused != 0) {
            return refused;
        }
    }
    *event = taken;
    return 0;
}

int cairn_rdma_ack_cm_event(rdma_cm_event* event) {
    if (event == nullptr) {
        return result_of(EINVAL);
    }
    acknowledge(std::unique_ptr<Event>(static_cast<Event*>(event)));
    return 0;
}

const char* cairn_rdma_event_str(rdma_cm_event_type event) {
    const auto index = static_cast<std::size_t>(event);
    return index < kNames.size() ? kNames[index] : "UNKNOWN EVENT";
}
