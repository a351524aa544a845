// Any bytes as a frame: the judge of RoCEv2 frames, each lower header both ways, and agreement between the slow
// judge and a path's fast one.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "lib/base/assert.hpp"
#include "lib/net/arp.hpp"
#include "lib/net/ethernet.hpp"
#include "lib/net/ipv4.hpp"
#include "lib/net/ipv6.hpp"
#include "lib/net/nd.hpp"
#include "lib/port/datagram.hpp"

namespace {

using namespace cairn;

// Checks that a parsed header is written again as it was: these headers have no ignored bits.
template <class Header>
void both_ways(std::span<const std::uint8_t> bytes) {
    const auto parsed = Header::parse(bytes);
    if (!parsed.ok()) {
        return;
    }
    std::vector<std::uint8_t> read(bytes.begin(), bytes.begin() + Header::kBytes);
    if constexpr (std::is_same_v<Header, net::Ipv4Header>) {
        std::uint8_t* const checksum = read.data() + 10;
        if (checksum[0] == 0xff && checksum[1] == 0xff) {  // both zeros of ones' complement are valid; 0 is written
            std::fill_n(checksum, 2, std::uint8_t{0});
        }
    }
    std::vector<std::uint8_t> written(Header::kBytes, 0xa5);
    net::emit_at(written.data(), parsed.value());
    CAIRN_ASSERT(written == read);
}

// Checks that the slow judge accepts each frame that a path accepts.
void judges_agree(std::span<const std::uint8_t> frame) {
    const port::ParsedFrame parsed = port::parse_frame(frame);
    if (!parsed.ok()) {
        return;
    }
    const port::Datagram& datagram = parsed.value();
    CAIRN_ASSERT(datagram.udp_payload.data() + datagram.udp_payload.size() <= frame.data() + frame.size());
    if (datagram.key.local.is_v4() != datagram.key.remote.is_v4()) {
        return;
    }
    port::Path path(datagram.key);
    path.resolve(datagram.destination_mac, datagram.source_mac);
    // Both read whole blocks, so they get the room that a packet buffer has.
    std::array<std::uint8_t, 64 + 65536 + 64> room;
    if (frame.size() > 65536) {
        return;
    }
    room.fill(0x5a);
    std::memcpy(room.data() + 64, frame.data(), frame.size());
    const auto arrival = path.judge_arrival(room.data() + 64, frame.size());
    if (arrival != port::Path::Arrival::NoMatch) {
        const bool right =
            port::has_room_for_icrc(datagram) && port::icrc_of_frame(datagram) == port::carried_icrc(datagram);
        CAIRN_ASSERT(right == (arrival != port::Path::Arrival::BadIcrc));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::span<const std::uint8_t> bytes(data, size);
    both_ways<net::EthernetHeader>(bytes);
    both_ways<net::Ipv4Header>(bytes);
    both_ways<net::Ipv6Header>(bytes);
    both_ways<net::ArpMessage>(bytes);
    net::Ipv6Header ip;
    ip.source = net::IpAddress::parse("fe80::1").value();
    ip.destination = net::all_nodes_group();
    ip.hop_limit = net::kNeighbourHopLimit;
    (void)net::NeighbourMessage::parse(ip, bytes);
    judges_agree(bytes);
    return 0;
}
