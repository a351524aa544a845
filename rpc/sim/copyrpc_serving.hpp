// The handlers of a simulated world of copyrpc: they answer at once or later, keep requests, refuse, and call others.
#pragma once

#include "rpc/sim/copyrpc_calling.hpp"

namespace cairn::sim {

class CopyrpcServing {
public:
    CopyrpcServing(World& world, CopyrpcOracle& oracle, CopyrpcCalling& calling)
        : world_(world), random_(world.random()), oracle_(oracle), calling_(calling) {}

    // Sets the handlers of a new process.
    void start(CopyrpcNode& node);
    // Answers what is due.
    void answer_kept(CopyrpcNode& node);
    // From now on no handler ends a session.
    void set_calm() noexcept { calm_ = true; }

private:
    void execute(CopyrpcNode& node, const copyrpc::Request& request);
    void execute_strange(CopyrpcNode& node, const copyrpc::Request& request);
    bool call_another(CopyrpcNode& node, const copyrpc::Request& request, const CopyrpcCall& call);
    void keep(CopyrpcNode& node, const copyrpc::Request& request, const CopyrpcCall& call, bool with_payload);
    // Returns false if the handle is stale.
    bool answer(CopyrpcNode& node, const KeptRequest& request);
    bool answer_by_hand(CopyrpcNode& node, const KeptRequest& request, std::span<const std::uint8_t> message);

    World& world_;
    Random& random_;
    CopyrpcOracle& oracle_;
    CopyrpcCalling& calling_;
    bool calm_ = false;
};

}  // namespace cairn::sim
