// The handlers of a simulated world of calls over connections. They answer at once or later, keep requests, refuse, and
// make calls.
#pragma once

#include "rpc/sim/linked_calling.hpp"

namespace cairn::sim {

class LinkedServing {
public:
    LinkedServing(World& world, LinkedSystem& system, LinkedOracle& oracle, LinkedCalling& calling)
        : world_(world), random_(world.random()), system_(system), oracle_(oracle), calling_(calling) {}

    // Sets the handlers of a new process.
    void start(LinkedNode& node);
    // Sends the answers that are due.
    void answer_kept(LinkedNode& node);
    // From now on handlers end no session.
    void set_calm() noexcept { calm_ = true; }

private:
    void execute(LinkedNode& node, const LinkedRequest& request);
    void execute_strange(LinkedNode& node, const LinkedRequest& request);
    void refuse(LinkedNode& node, const LinkedRequest& request);
    bool call_another(LinkedNode& node, const LinkedRequest& request, const LinkedCall& call);
    void keep(LinkedNode& node, const LinkedRequest& request, const LinkedCall& call, bool with_payload);
    // Answers a kept request. Returns false if the handle is stale.
    bool answer(LinkedNode& node, const KeptRequest& request);
    bool answer_by_hand(LinkedNode& node, const KeptRequest& request, std::span<const std::uint8_t> message);

    World& world_;
    Random& random_;
    LinkedSystem& system_;
    LinkedOracle& oracle_;
    LinkedCalling& calling_;
    bool calm_ = false;
};

}  // namespace cairn::sim
