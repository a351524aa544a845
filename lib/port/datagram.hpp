// The slow, generic way to look at a frame: any RoCEv2 datagram with whatever lower headers a peer may send.
// A Path's matches_received() is the fast one; what that refuses is judged here, for its reason's sake.
#pragma once

#include <cstdint>
#include <span>

#include "lib/net/parsed.hpp"
#include "lib/port/path.hpp"

namespace cairn::port {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_FRAME_VERDICTS(X)                                                                                \
    X(Truncated, "port_truncated", "frames that end inside their headers: a broken or hostile sender")         \
    X(NotRoce, "port_not_roce", "frames that are not UDP 4791: other traffic on the link")                     \
    X(NotForUs, "port_not_for_us", "RoCEv2 frames for other stations: a flooding switch, or promiscuous mode") \
    X(Options, "port_options", "IPv4 options or IPv6 extension headers, which RoCEv2 peers do not send")       \
    X(Fragment, "port_fragment", "fragments: the sender's path MTU is larger than the link's")                 \
    X(BadChecksum, "port_bad_checksum", "IPv4 headers damaged on the way, or a peer that miscounts")           \
    X(BadUdpChecksum, "port_bad_udp_checksum", "UDP checksums that are there and wrong: damage on the way")    \
    X(BadLength, "port_bad_length", "IP or UDP lengths that contradict each other or the frame")               \
    X(BadAddress, "port_bad_address", "sources that no one can be: multicast, unspecified or mapped addresses")

CAIRN_DECLARE_COUNTERS(FrameVerdict, CAIRN_FRAME_VERDICTS);

// A RoCEv2 datagram in its frame, which it points into.
struct Datagram {
    PathKey key{};  // as the receiver sees it: local is the destination; traffic_class 0, whatever it has
    net::MacAddress source_mac{};
    net::MacAddress destination_mac{};
    std::span<const std::uint8_t> ip_and_udp{};   // the headers, for the ICRC
    std::span<const std::uint8_t> udp_payload{};  // BTH ... ICRC; its contents are not judged here
    std::uint16_t ip_id = 0;                      // IPv4; 0 for IPv6
    std::uint16_t ip_flags_and_offset = 0;        // IPv4: 0, or don't fragment
    std::uint8_t traffic_class = 0;               // DSCP and ECN as received
    std::uint8_t ttl = 0;

    [[nodiscard]] std::uint8_t ecn() const noexcept { return traffic_class & 3U; }

    // True when a Path's icrc() holds for it: what that takes as constant is so here.
    [[nodiscard]] bool has_path_icrc() const noexcept {
        return !key.local.is_v4() || (ip_id == 0 && ip_flags_and_offset == 0x4000);
    }
};

using ParsedFrame = net::Parsed<Datagram, FrameVerdict>;

// Any RoCEv2 datagram to anyone. Never NotForUs.
[[nodiscard]] ParsedFrame parse_frame(std::span<const std::uint8_t> frame) noexcept;

// Only datagrams to this station: its MAC and its IP address.
[[nodiscard]] ParsedFrame parse_frame_for(const net::MacAddress& mac, const net::IpAddress& ip,
                                          std::span<const std::uint8_t> frame) noexcept;

// Only datagrams to one of these multicast groups, by its own Ethernet address.
[[nodiscard]] ParsedFrame parse_frame_for_groups(std::span<const net::IpAddress> groups,
                                                 std::span<const std::uint8_t> frame) noexcept;

// The ICRC over all but the last four bytes of the datagram, from its own headers: right for any IPv4 ID.
// The payload must hold a BTH and an ICRC (has_room_for_icrc).
[[nodiscard]] bool has_room_for_icrc(const Datagram& datagram) noexcept;
[[nodiscard]] std::uint32_t icrc_of_frame(const Datagram& datagram) noexcept;
// The ICRC that the datagram carries.
[[nodiscard]] std::uint32_t carried_icrc(const Datagram& datagram) noexcept;

}  // namespace cairn::port
