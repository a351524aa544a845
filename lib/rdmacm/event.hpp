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

// Ends an endpoint that no program has.
struct EndEndpoint {
    void operator()(Endpoint* endpoint) const noexcept;
};
using OwnedEndpoint = std::unique_ptr<Endpoint, EndEndpoint>;

// The program gets it as it is, and gives it back.
struct Event : rdma_cm_event {
    Event(Endpoint& whom, rdma_cm_event_type kind, int code) noexcept : rdma_cm_event{}, to(&whom) {
        event = kind;
        status = code;
    }
    // Copies what the peer sent along.
    void set_private_data(std::span<const std::uint8_t> bytes) noexcept;

    Endpoint* to;            // of a request: the one that listens
    OwnedEndpoint asked{};   // of a request, until the program has it
    Group* group = nullptr;  // of a join
    std::array<std::uint8_t, 224> data{};
};

// Of an endpoint. The EventLock guards it.
struct EventTally {
    std::uint32_t waiting = 0;  // on its channel, until the program takes them
    std::uint32_t most_waiting = std::numeric_limits<std::uint32_t>::max();  // beyond it no request is told
    std::uint32_t given = 0;
    std::uint32_t acknowledged = 0;
};

// Endpoints of several adapters may share a channel, and are told events under the locks of these. One lock guards the
// channels of a process, who is told on which, and what was acknowledged. It is taken last. A thread that has it comes
// here again only in a signal handler that calls exit(), which does not wait for what it interrupted.
class EventLock {
public:
    EventLock() noexcept;
    EventLock(const EventLock&) = delete;
    EventLock& operator=(const EventLock&) = delete;
    ~EventLock();
    // The thread had it already: what it guards may be half changed.
    [[nodiscard]] bool is_again() const noexcept { return is_again_; }
    // Gives up the lock until an event was acknowledged. A cancellation point.
    void await_acknowledgement() { pthread_cond_wait(&acknowledged, &mutex); }
    // In a child of fork(): whoever had the lock is not here.
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

// The listener is told of no request from now on while `most` wait for the program. They may have ended meanwhile:
// their peers fill no memory by asking and ending over and over.
void limit_requests(Endpoint& listener, std::uint32_t most);
// Returns where the listener is told of a request; nullptr if so many wait.
[[nodiscard]] Channel* find_room(Endpoint& listener);
// Queues the event on the channel of its endpoint. It is dropped in a handler of exit() that interrupted such a call.
void tell(std::unique_ptr<Event> event);
// Returns the first event, which the program gets; nullptr if there is none. A request's endpoint is the program's from
// now on, by an id of its own.
[[nodiscard]] std::unique_ptr<Event> take(Channel& channel);
// The same for who has no ids, and counts for itself what it took: a request's endpoint is left in the event.
[[nodiscard]] std::unique_ptr<Event> take_unseen(Channel& channel);
// The program gives the event back.
void acknowledge(std::unique_ptr<Event> event) noexcept;
// Removes what the endpoint was not told yet. The caller lets it end outside of all locks.
[[nodiscard]] std::vector<std::unique_ptr<Event>> forget_events(Endpoint& endpoint);
[[nodiscard]] std::vector<std::unique_ptr<Event>> forget_events(Group& group);
// Moves the endpoint, what it was not told yet, and who asks it with what they were not told, to another channel.
void migrate(Endpoint& endpoint, Channel& to);

}  // namespace cairn::rdmacm
