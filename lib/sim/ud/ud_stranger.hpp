// A hostile peer that reads along and sends datagrams of its own. Any host might send some of them; most are wrong in
// one respect.
#pragma once

#include <optional>

#include "lib/sim/network.hpp"
#include "lib/sim/random.hpp"

namespace cairn::sim {

class UdStranger {
public:
    // Makes the hostile peer. `node` is its own place in the network. It does not read frames to that place.
    UdStranger(Network& network, std::size_t node, std::uint32_t path_mtu_bytes, std::uint64_t seed) noexcept
        : network_(network), node_(node), path_mtu_bytes_(path_mtu_bytes), random_(seed) {}

    [[nodiscard]] std::size_t node() const noexcept { return node_; }
    // Returns a datagram made from one that the hostile peer saw; nullopt for its own datagrams.
    [[nodiscard]] std::optional<Frame> forge_from(const Frame& frame);

private:
    void spoil(std::vector<std::uint8_t>& datagram);

    Network& network_;
    std::size_t node_;
    std::uint32_t path_mtu_bytes_;
    Random random_;
};

}  // namespace cairn::sim
