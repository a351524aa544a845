// Events on their way to a program, and the channels on which it waits for them.
#pragma once

#include <pthread.h>
#include <rdma/rdma_cma.h>

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "lib/ibverbs/event_count.hpp"

namespace cairn::rdmacm {

struct Channel;
struct Endpoint;
struct Group;
struct Id;

// Ends an endpoint that the program has not got.
struct EndEndpoint {
    void operator()(Endpoint* endpoint) const noexcept;
};
using OwnedEndpoint = std::unique_ptr<Endpoint, EndEndpoint>;

// An event. The program gets it as it is, and gives it back.
struct Event : rdma_cm_event {
    Event(Endpoint& whom, rdma_cm_event_type kind, int code) noexcept : rdma_cm_event{}, to(&whom) {
        event = kind;
        status = code;
    }
    // Copies the peer's private data.
    void set_private_data(std::span<const std::uint8_t> bytes) noexcept;

    Endpoint* to;            // of a request: the listening endpoint
    OwnedEndpoint asked{};   // of a request, until the program has it
    Group* group = nullptr;  // of a join
    std::array<std::uint8_t, 224> data{};
};

// The events of an endpoint. The EventLock guards it.
struct EventTally {
    std::uint32_t waiting = 0;  // on its channel, until the program takes them
    std::uint32_t most_waiting = std::numeric_limits<std::uint32_t>::max();  // limit of waiting events; requests beyond
                                                                             // it are dropped
    std::uint32_t given = 0;
    std::uint32_t acknowledged = 0;
};

// Guards the channels of a process, the channel of each endpoint, and the counts of acknowledged events. It is one lock
// because endpoints of several adapters may share a channel, and get events under the locks of these adapters. It is
// taken last. A thread that has it takes it again only in a signal handler that calls exit(). That handler does not
// wait for the call that it interrupted.
class EventLock {
public:
    EventLock() noexcept;
    EventLock(const EventLock&) = delete;
    EventLock& operator=(const EventLock&) = delete;
    ~EventLock();
    // Returns whether the thread had the lock already: the state that it guards may be half changed.
    [[nodiscard]] bool is_again() const noexcept { return is_again_; }
    // Gives up the lock until an event was acknowledged. A cancellation point.
    void await_acknowledgement() { pthread_cond_wait(&acknowledged, &mutex); }
    // Makes the lock anew in a child of fork(): a thread that had it is not here.
    static void renew() noexcept;
    void tell_acknowledged() noexcept { pthread_cond_broadcast(&acknowledged); }

private:
    static pthread_mutex_t mutex;
    static pthread_cond_t acknowledged;

    const bool is_again_;
};

struct Channel : rdma_event_channel {
    ibverbs::EventCount count{};
    std::deque<std::unique_ptr<Event>> waiting;

    [[nodiscard]] static Channel& of(rdma_event_channel* channel) noexcept { return *static_cast<Channel*>(channel); }
};

// Limits the listener's requests that wait for the program to `most`. Requests count although they may have ended
// meanwhile: otherwise peers could fill memory by asking and ending over and over.
void limit_requests(Endpoint& listener, std::uint32_t most);
// Returns the channel for a request to the listener; nullptr if it has as many waiting requests as the limit.
[[nodiscard]] Channel* find_room(Endpoint& listener);
// Queues the event on the channel of its endpoint. It is dropped in a handler of exit() that interrupted such a call.
void tell(std::unique_ptr<Event> event);
// Returns the first event, which the program gets; nullptr if there is none. A request's endpoint is the program's from
// now on, by an id of its own.
[[nodiscard]] std::unique_ptr<Event> take(Channel& channel);
// As take(), for the ucma files, which have no rdma_cm_id. The caller counts the events that it took; a request's
// endpoint stays in the event.
[[nodiscard]] std::unique_ptr<Event> take_unseen(Channel& channel);
// Takes the event back from the program.
void acknowledge(std::unique_ptr<Event> event) noexcept;
// Removes the events that the endpoint did not get yet. The caller lets them end outside of all locks.
[[nodiscard]] std::vector<std::unique_ptr<Event>> forget_events(Endpoint& endpoint);
[[nodiscard]] std::vector<std::unique_ptr<Event>> forget_events(Group& group);
// Moves the endpoint to another channel, with its undelivered events, its pending requests and their events.
void migrate(Endpoint& endpoint, Channel& to);

}  // namespace cairn::rdmacm
