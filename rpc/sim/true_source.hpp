// Distinguishes frames of honest hosts from frames with a false source.
#pragma once

#include <algorithm>

#include "lib/sim/network.hpp"

namespace cairn::sim {

// True if the frame comes from the host that it names as its source. Hostile peers use other hosts' addresses, but
// their own Ethernet addresses. They may send packets that they overheard.
[[nodiscard]] inline bool is_from_its_source(const Network& network, const Frame& frame) noexcept {
    constexpr std::size_t kSourceMac = 6;  // its offset in an Ethernet header
    const net::MacAddress mac = Network::mac_of(network.node_of(frame.source()));
    return std::equal(mac.octets.begin(), mac.octets.end(), frame.bytes.begin() + kSourceMac);
}

}  // namespace cairn::sim
