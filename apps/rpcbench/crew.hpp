// The state that the workers of cairn-rpcbench share.
#pragma once

#include <atomic>
#include <memory>

#include "lib/connections/agent.hpp"
#include "rpc/erpc/directory.hpp"

namespace cairn::rpcbench {

// All threads read and write it.
struct Crew {
    std::shared_ptr<connections::Agent> agent = connections::Agent::create();
    // The results that the first worker finds for all workers, with eRPC:
    std::atomic<bool> known{false};
    std::atomic<bool> failed{false};
    erpc::ServiceOffer offer{};  // valid once `known` is true
};

}  // namespace cairn::rpcbench
