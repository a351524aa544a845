// A stranger that reads along and sends datagrams of its own. Some of them anybody might send; most are wrong in one
// respect.
#pragma once

#include <optional>

#include "lib/sim/network.hpp"
#include "lib/sim/random.hpp"

namespace cairn::sim {

class UdStranger {
public:
    // `node` is the stranger's own place in the network. Frames to that place are never read.
    UdStranger(Network& network, std::size_t node, std::uint32_t path_mtu_bytes, std::uint64_t seed) noexcept
        : network_(network), node_(node), path_mtu_bytes_(path_mtu_bytes), random_(seed) {}

    [[nodiscard]] std::size_t node() const noexcept { return node_; }
    // Returns a datagram made from one that the stranger saw. Returns nothing for its own datagrams.
    [[nodiscard]] std::optional<Frame> forge_from(const Frame& frame);

private:
    void spoil(std::vector<std::uint8_t>& datagram);

    Network& network_;
    std::size_t node_;
    std::uint32_t path_mtu_bytes_;
    Random random_;
};

}  // namespace cairn::sim
