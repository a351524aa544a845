#include "lib/sim/ud/ud_stranger.hpp"

#include <algorithm>

#include "lib/roce/ud/mux.hpp"

namespace cairn::sim {

namespace {

constexpr std::size_t kPkeyAt = 2;
constexpr std::size_t kDestAt = 5;
constexpr std::size_t kQkeyAt = sizeof(wire::RawBth);
constexpr std::size_t kHeaders = sizeof(wire::RawUd);

}  // namespace

// Spoils the datagram in one respect, or in none.
void UdStranger::spoil(std::vector<std::uint8_t>& datagram) {
    switch (random_.below(10)) {
        case 0:
            datagram[1] = static_cast<std::uint8_t>(datagram[1] | random_.between(1, 15));  // version
            break;
        case 1:
            datagram[0] = static_cast<std::uint8_t>(0x66U + random_.below(0x1a));  // a datagram of no known kind
            break;
        case 2:
            datagram[0] = 0x04;  // to a connection
            break;
        case 3:
            datagram[kPkeyAt + 1] ^= 0x55U;
            break;
        case 4:
            datagram[kDestAt + random_.below(3)] ^= static_cast<std::uint8_t>(random_.between(1, 255));
            break;
        case 5:
            datagram[kQkeyAt + random_.below(4)] ^= static_cast<std::uint8_t>(random_.between(1, 255));
            break;
        case 6:
            datagram.resize(datagram.size() - random_.between(1, 3));  // no whole words
            break;
        case 7:
            datagram.resize(random_.between(sizeof(wire::RawBth) + port::kIcrcBytes, kHeaders + port::kIcrcBytes - 1));
            break;
        case 8:
            datagram[0] = wire::kUdSendOnly;
            datagram[1] &= 0xcfU;
            datagram.resize(kHeaders + path_mtu_bytes_ + 4 * random_.between(1, 4) + port::kIcrcBytes, 0x77);
            break;
        default:
            break;
    }
}

std::optional<Frame> UdStranger::forge_from(const Frame& frame) {
    const net::IpAddress own = network_.address_of(node_);
    if (frame.source() == own || frame.bytes.size() < frame.lower_bytes() + kHeaders + port::kIcrcBytes) {
        return std::nullopt;
    }
    std::vector<std::uint8_t> datagram(frame.bytes.begin() + static_cast<std::ptrdiff_t>(frame.lower_bytes()),
                                       frame.bytes.end());
    std::for_each(datagram.begin() + kHeaders, datagram.end(), [](std::uint8_t& octet) { octet = ~octet; });
    spoil(datagram);
    // Sends in its own name, or in another host's.
    const net::IpAddress from = random_.chance(kMillion / 2) ? own : frame.source();
    port::Path path({from, frame.destination(), frame.udp_source_port(), 0});
    const net::IpAddress to = frame.destination();
    path.resolve(Network::mac_of(node_), to.is_group() ? to.group_mac() : Network::mac_of(network_.node_of(to)));
    Frame made{std::vector<std::uint8_t>(path.lower_bytes())};
    made.bytes.insert(made.bytes.end(), datagram.begin(), datagram.end());
    path.seal(made.bytes.data() + path.lower_bytes(), static_cast<std::uint16_t>(datagram.size()));
    return made;
}

}  // namespace cairn::sim
