// Completion channels.
#pragma once

#include <infiniband/verbs.h>

#include "lib/ibverbs/event_count.hpp"
#include "lib/ibverbs/objects.hpp"

namespace cairn::ibverbs {

struct Cq;

// Reports which of its completion queues fired, each event once. The adapter's lock guards it.
struct Channel : ibv_comp_channel, OfContext {
    EventCount count{};
    Cq* first = nullptr;  // of the queues that have an event not taken yet
    Cq* last = nullptr;
    std::uint32_t users = 0;  // completion queues

    [[nodiscard]] static Channel& of(ibv_comp_channel* channel) noexcept { return *static_cast<Channel*>(channel); }

    void add(Cq& cq) noexcept;
    // Returns the queue that fired first; nullptr if there is none.
    [[nodiscard]] Cq* take() noexcept;
    // Takes back the event of a queue that ends.
    void remove(Cq& cq) noexcept;
};

}  // namespace cairn::ibverbs
