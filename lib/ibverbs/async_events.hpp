// Asynchronous events of a context: changes of queue pairs and queues other than completions.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "lib/ibverbs/event_count.hpp"

namespace cairn::ibverbs {

// An object that may have such events. Each kind waits at most once until the program gets it.
struct AsyncSource {
    std::uint32_t waiting = 0;  // by ibv_event_type
    std::uint32_t given = 0;    // events that the program got, and acknowledges
    AsyncSource* next = nullptr;
    // Makes the event for the program.
    ibv_async_event (*describe)(AsyncSource& source, ibv_event_type type) noexcept = nullptr;
};

// The events of a context that wait. The adapter's lock guards it.
struct AsyncEvents {
    EventCount count{};
    AsyncSource* first = nullptr;

    // Adds an event. Returns true if it did not wait already.
    bool add(AsyncSource& source, ibv_event_type type) noexcept;
    // Moves the source's waiting events to the end, after all others.
    void put_last(AsyncSource& source) noexcept;
    // Returns the source of the event that it wrote to `event`; nullptr if there is none.
    [[nodiscard]] AsyncSource* take(ibv_async_event& event) noexcept;
    // Removes the events of a source that ends.
    void remove(AsyncSource& source) noexcept;

private:
    void append(AsyncSource& source) noexcept;
    void unlink(AsyncSource& source) noexcept;
};

}  // namespace cairn::ibverbs
