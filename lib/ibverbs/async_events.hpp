// Asynchronous events of a context: what happened to queue pairs and queues beside completions.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "lib/ibverbs/event_count.hpp"

namespace cairn::ibverbs {

// Whoever may have such events. Each kind waits once at most until it is given to the program.
struct AsyncSource {
    std::uint32_t waiting = 0;  // by ibv_event_type
    std::uint32_t given = 0;    // to the program, which acknowledges them
    AsyncSource* next = nullptr;
    // Makes the event to give to the program.
    ibv_async_event (*describe)(AsyncSource& source, ibv_event_type type) noexcept = nullptr;
};

// The adapter's lock guards it.
struct AsyncEvents {
    EventCount count{};
    AsyncSource* first = nullptr;

    // Returns true if the event did not wait already.
    bool add(AsyncSource& source, ibv_event_type type) noexcept;
    // What waits of the source comes behind all others.
    void put_last(AsyncSource& source) noexcept;
    // Returns the source of the event that it wrote to `event`; nullptr if there is none.
    [[nodiscard]] AsyncSource* take(ibv_async_event& event) noexcept;
    // The source ends: its events do, too.
    void remove(AsyncSource& source) noexcept;

private:
    void append(AsyncSource& source) noexcept;
    void unlink(AsyncSource& source) noexcept;
};

}  // namespace cairn::ibverbs
