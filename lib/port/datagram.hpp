// Parses any frame, with any lower headers, as a RoCEv2 datagram. This is the slow, general way; the fast one is
// Path::matches_received(). Frames that the fast way refuses come here and get a reason.
#pragma once

#include <cstdint>
#include <span>

#include "lib/net/parsed.hpp"
#include "lib/port/path.hpp"

namespace cairn::port {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_FRAME_VERDICTS(X)                                                                                       \
    X(Truncated, "port_truncated", "frames that end inside their headers: a broken or hostile sender")                \
    X(NotRoce, "port_not_roce", "frames that are not UDP 4791: other traffic on the link")                            \
    X(NotForUs, "port_not_for_us", "RoCEv2 frames for other stations: a flooding switch, or promiscuous mode")        \
    X(Options, "port_options", "IPv4 options or IPv6 extension headers, which RoCEv2 peers do not send")              \
    X(Fragment, "port_fragment", "fragments: the sender's path MTU is larger than the link's")                        \
    X(BadChecksum, "port_bad_checksum", "IPv4 headers damaged on the way, or a peer that miscounts")                  \
    X(BadUdpChecksum, "port_bad_udp_checksum",                                                                        \
      "UDP checksum and ICRC are wrong: damage, or a veth's batches: ethtool -K DEVICE tx off")                       \
    X(BadLength, "port_bad_length", "lengths that contradict each other or the frame, or a veth's batches, as above") \
    X(BadAddress, "port_bad_address", "sources that no one can be: multicast, unspecified or mapped addresses")

CAIRN_DECLARE_COUNTERS(FrameVerdict, CAIRN_FRAME_VERDICTS);

// A RoCEv2 datagram. The spans point into its frame.
struct Datagram {
    PathKey key{};  // seen by the receiver: `local` is the destination. traffic_class is always 0
    net::MacAddress source_mac{};
    net::MacAddress destination_mac{};
    std::span<const std::uint8_t> ip_and_udp{};   // IP and UDP header, for the ICRC
    std::span<const std::uint8_t> udp_payload{};  // BTH ... ICRC; the contents are not judged here
    std::uint16_t ip_id = 0;                      // IPv4; 0 for IPv6
    std::uint16_t ip_flags_and_offset = 0;        // IPv4: 0, or don't fragment
    std::uint8_t traffic_class = 0;               // DSCP and ECN as received
    std::uint8_t ttl = 0;

    [[nodiscard]] std::uint8_t ecn() const noexcept { return traffic_class & 3U; }

    // Returns true if Path::icrc() gives the right ICRC for the datagram. Path assumes IPv4 ID 0 and don't fragment.
    [[nodiscard]] bool has_path_icrc() const noexcept {
        return !key.local.is_v4() || (ip_id == 0 && ip_flags_and_offset == 0x4000);
    }
};

using ParsedFrame = net::Parsed<Datagram, FrameVerdict>;

// Accepts a RoCEv2 datagram to any station. Never returns NotForUs.
[[nodiscard]] ParsedFrame parse_frame(std::span<const std::uint8_t> frame) noexcept;

// Accepts only datagrams to this station, that is, to its MAC and its IP address.
[[nodiscard]] ParsedFrame parse_frame_for(const net::MacAddress& mac, const net::IpAddress& ip,
                                          std::span<const std::uint8_t> frame) noexcept;

// Accepts only datagrams to one of these multicast groups, sent to the group's Ethernet address.
[[nodiscard]] ParsedFrame parse_frame_for_groups(std::span<const net::IpAddress> groups,
                                                 std::span<const std::uint8_t> frame) noexcept;

// Returns true if the payload holds a BTH and an ICRC. Then icrc_of_frame() returns the ICRC over all but the last four
// bytes of the datagram, computed from its own headers. So it is right for any IPv4 ID.
[[nodiscard]] bool has_room_for_icrc(const Datagram& datagram) noexcept;
[[nodiscard]] std::uint32_t icrc_of_frame(const Datagram& datagram) noexcept;
// Returns the ICRC that the datagram carries in its last four bytes.
[[nodiscard]] std::uint32_t carried_icrc(const Datagram& datagram) noexcept;
// Returns true if there is an ICRC and it is right.
[[nodiscard]] bool has_right_icrc(const Datagram& datagram) noexcept;

}  // namespace cairn::port
