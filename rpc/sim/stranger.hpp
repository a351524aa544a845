// A stranger who reads along and forges eRPC packets: sound in every check below eRPC, but from another address or
// another queue pair than the session's peer. Whoever believes one has lost.
#pragma once

#include <optional>

#include "lib/sim/network.hpp"
#include "lib/sim/random.hpp"

namespace cairn::sim {

class Stranger {
public:
    // `node` is the stranger's own place in the network; answers to it are never read.
    Stranger(Network& network, std::size_t node, std::uint64_t seed) noexcept
        : network_(network), node_(node), random_(seed) {}

    // After seeing `frame` on its way: may send one like it. Requests and responses are the next of their slot
    // with other contents; control packets are of any type, with the token just seen.
    void forge_from(const Frame& frame, Instant now);
    [[nodiscard]] std::uint64_t forged() const noexcept { return forged_; }

private:
    Network& network_;
    std::size_t node_;
    Random random_;
    std::uint64_t forged_ = 0;
};

}  // namespace cairn::sim
