// A forger: it overhears traffic and forges eRPC packets. A forged packet passes every check below eRPC, but comes from
// another address or queue pair than the session's peer. An endpoint must believe none of them.
#pragma once

#include <optional>

#include "lib/sim/network.hpp"
#include "lib/sim/random.hpp"

namespace cairn::sim {

class Stranger {
public:
    // `node`: the forger's own place in the network. Answers to it are never read.
    Stranger(Network& network, std::size_t node, std::uint64_t seed) noexcept
        : network_(network), node_(node), random_(seed) {}

    // Takes a frame on its way, and may send a forged one like it. A forged request or response is the next one of its
    // slot, with other contents. A forged control packet has any type, and the token of the frame.
    void forge_from(const Frame& frame, Instant now);
    [[nodiscard]] std::uint64_t forged() const noexcept { return forged_; }

private:
    Network& network_;
    std::size_t node_;
    Random random_;
    std::uint64_t forged_ = 0;
};

}  // namespace cairn::sim
