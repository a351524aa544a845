// Domains of extended reliable connections, and targets in them.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <vector>

#include "lib/ibverbs/objects.hpp"

namespace cairn::ibverbs {

struct Qp;

// A target, and the queue pairs of verbs.h that stand for it: the one that made it, and those that ibv_open_qp() gave.
// It ends with the last of them. The adapter's lock guards it.
struct SharedTarget : roce::EventSink {
    // Passes the event on to all of them.
    void on_event() noexcept override;

    roce::Engine::RcQp* connection = nullptr;
    std::vector<Qp*> holders{};
};

// A domain. All contexts that opened one with the same file share it. The adapter's lock guards it.
struct SharedXrcd {
    roce::Xrcd id{};
    std::vector<SharedTarget*> targets{};
};

// A domain of verbs.h, which XRC targets and receive queues join.
struct Xrcd : ibv_xrcd, OfContext {
    std::shared_ptr<SharedXrcd> shared;
    std::uint32_t users = 0;

    [[nodiscard]] roce::Xrcd id() const noexcept { return shared->id; }
    [[nodiscard]] static Xrcd& of(ibv_xrcd* xrcd) noexcept { return *static_cast<Xrcd*>(xrcd); }
};

}  // namespace cairn::ibverbs
