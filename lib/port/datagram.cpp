#include "lib/port/datagram.hpp"

#include <algorithm>

#include "lib/base/assert.hpp"
#include "lib/net/ethernet.hpp"
#include "lib/net/ipv4.hpp"
#include "lib/net/ipv6.hpp"
#include "lib/net/udp.hpp"
#include "lib/wire/bth.hpp"
#include "lib/wire/icrc.hpp"

namespace cairn::port {

namespace {

FrameVerdict verdict_of(net::Drop reason) noexcept {
    switch (reason) {
        case net::Drop::Truncated:
            return FrameVerdict::Truncated;
        case net::Drop::Options:
            return FrameVerdict::Options;
        case net::Drop::BadChecksum:
            return FrameVerdict::BadChecksum;
        case net::Drop::Fragment:
            return FrameVerdict::Fragment;
        case net::Drop::BadLength:
            return FrameVerdict::BadLength;
        case net::Drop::BadAddress:
            return FrameVerdict::BadAddress;
        case net::Drop::NotForUs:
        case net::Drop::Unsupported:
        case net::Drop::BadVersion:
        case net::Drop::BadNeighbour:
        case net::Drop::AddressConflict:
        case net::Drop::TooFrequent:
        case net::Drop::NoBuffer:
        case net::Drop::Count:
            break;
    }
    return FrameVerdict::NotRoce;
}

// The fields that both families have once their header is read.
struct IpPacket {
    Datagram datagram;  // addresses, ID, flags, traffic class, TTL
    std::size_t header_bytes = 0;
    std::size_t payload_bytes = 0;
};
using ParsedIp = net::Parsed<IpPacket, FrameVerdict>;

ParsedIp parse_ipv4(std::span<const std::uint8_t> packet) noexcept {
    const auto parsed = net::Ipv4Header::parse(packet);
    if (!parsed.ok()) {
        return verdict_of(parsed.reason());
    }
    const net::Ipv4Header& ip = parsed.value();
    if (ip.protocol != net::kProtocolUdp) {
        return FrameVerdict::NotRoce;
    }
    if (ip.is_fragment()) {
        return FrameVerdict::Fragment;
    }
    IpPacket result;
    result.datagram.key = {ip.destination, ip.source, 0, 0};
    result.datagram.traffic_class = ip.traffic_class;
    result.datagram.ip_id = ip.id;
    result.datagram.ip_flags_and_offset = ip.flags_and_offset;
    result.datagram.ttl = ip.ttl;
    result.header_bytes = net::Ipv4Header::kBytes;
    result.payload_bytes = ip.total_bytes - net::Ipv4Header::kBytes;
    return result;
}

ParsedIp parse_ipv6(std::span<const std::uint8_t> packet) noexcept {
    const auto parsed = net::Ipv6Header::parse(packet);
    if (!parsed.ok()) {
        return verdict_of(parsed.reason());
    }
    const net::Ipv6Header& ip = parsed.value();
    if (ip.next_header == net::kIpv6Fragment) {
        return FrameVerdict::Fragment;
    }
    if (ip.next_header != net::kProtocolUdp) {
        return net::is_ipv6_extension(ip.next_header) ? FrameVerdict::Options : FrameVerdict::NotRoce;
    }
    IpPacket result;
    result.datagram.key = {ip.destination, ip.source, 0, 0};
    result.datagram.traffic_class = ip.traffic_class;
    result.datagram.ttl = ip.hop_limit;
    result.header_bytes = net::Ipv6Header::kBytes;
    result.payload_bytes = ip.payload_bytes;
    return result;
}

// A kernel leaves the UDP checksum of a local sender unfinished if a device is to finish it, and a veth never does. The
// ICRC proves the datagram better.
ParsedFrame parse_udp(IpPacket ip, std::span<const std::uint8_t> packet) noexcept {
    Datagram& datagram = ip.datagram;
    const std::span<const std::uint8_t> udp = packet.subspan(ip.header_bytes, ip.payload_bytes);
    const auto parsed = net::UdpHeader::parse(udp);
    if (!parsed.ok()) {
        // The IP header was whole: a short UDP header contradicts its length.
        return FrameVerdict::BadLength;
    }
    const net::UdpHeader& header = parsed.value();
    if (header.destination_port != net::kRoceUdpPort) {
        return FrameVerdict::NotRoce;
    }
    if (header.bytes != udp.size()) {
        return FrameVerdict::BadLength;
    }
    if (!datagram.key.remote.is_station()) {
        return FrameVerdict::BadAddress;
    }
    datagram.key.udp_source_port = header.source_port;
    datagram.ip_and_udp = packet.first(ip.header_bytes + net::UdpHeader::kBytes);
    datagram.udp_payload = udp.subspan(net::UdpHeader::kBytes);
    if (header.checksum != 0 && !net::udp_checksum_is_right(datagram.key.remote, datagram.key.local, udp) &&
        !has_right_icrc(datagram)) {
        return FrameVerdict::BadUdpChecksum;
    }
    return datagram;
}

}  // namespace

ParsedFrame parse_frame(std::span<const std::uint8_t> frame) noexcept {
    const auto parsed = net::EthernetHeader::parse(frame);
    if (!parsed.ok()) {
        return FrameVerdict::Truncated;
    }
    const net::EthernetHeader& ethernet = parsed.value();
    if (ethernet.type != net::kEtherTypeIpv4 && ethernet.type != net::kEtherTypeIpv6) {
        return FrameVerdict::NotRoce;
    }
    const std::span<const std::uint8_t> packet = frame.subspan(net::EthernetHeader::kBytes);
    const ParsedIp ip = ethernet.type == net::kEtherTypeIpv4 ? parse_ipv4(packet) : parse_ipv6(packet);
    if (!ip.ok()) {
        return ip.reason();
    }
    IpPacket found = ip.value();
    found.datagram.source_mac = ethernet.source;
    found.datagram.destination_mac = ethernet.destination;
    return parse_udp(found, packet);
}

ParsedFrame parse_frame_for(const net::MacAddress& mac, const net::IpAddress& ip,
                            std::span<const std::uint8_t> frame) noexcept {
    ParsedFrame parsed = parse_frame(frame);
    if (parsed.ok() && (parsed.value().destination_mac != mac || parsed.value().key.local != ip)) {
        return FrameVerdict::NotForUs;
    }
    return parsed;
}

ParsedFrame parse_frame_for_groups(std::span<const net::IpAddress> groups,
                                   std::span<const std::uint8_t> frame) noexcept {
    ParsedFrame parsed = parse_frame(frame);
    if (parsed.ok() && (std::find(groups.begin(), groups.end(), parsed.value().key.local) == groups.end() ||
                        parsed.value().destination_mac != parsed.value().key.local.group_mac())) {
        return FrameVerdict::NotForUs;
    }
    return parsed;
}

bool has_room_for_icrc(const Datagram& datagram) noexcept {
    return datagram.udp_payload.size() >= wire::Bth::kBytes + wire::kIcrcBytes;
}

bool has_right_icrc(const Datagram& datagram) noexcept {
    return has_room_for_icrc(datagram) && icrc_of_frame(datagram) == carried_icrc(datagram);
}

std::uint32_t icrc_of_frame(const Datagram& datagram) noexcept {
    CAIRN_ASSERT(has_room_for_icrc(datagram));
    return wire::icrc_finish(wire::icrc_lower_state(datagram.ip_and_udp), datagram.udp_payload.data(),
                             datagram.udp_payload.size() - wire::kIcrcBytes);
}

std::uint32_t carried_icrc(const Datagram& datagram) noexcept {
    CAIRN_ASSERT(has_room_for_icrc(datagram));
    const std::uint8_t* at = datagram.udp_payload.data() + datagram.udp_payload.size() - wire::kIcrcBytes;
    return std::uint32_t{at[0]} | (std::uint32_t{at[1]} << 8U) | (std::uint32_t{at[2]} << 16U) |
           (std::uint32_t{at[3]} << 24U);
}

}  // namespace cairn::port
