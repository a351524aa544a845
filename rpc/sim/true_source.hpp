// Which frames come from the host that they name as their source.
#pragma once

#include <algorithm>

#include "lib/sim/network.hpp"

namespace cairn::sim {

// Strangers speak for others, but from their own Ethernet addresses. They may send what they overheard.
[[nodiscard]] inline bool is_from_its_source(const Network& network, const Frame& frame) noexcept {
    constexpr std::size_t kSourceMac = 6;  // where it stands in an Ethernet header
    const net::MacAddress mac = Network::mac_of(network.node_of(frame.source()));
    return std::equal(mac.octets.begin(), mac.octets.end(), frame.bytes.begin() + kSourceMac);
}

}  // namespace cairn::sim
