// Raw frames of any sender, put onto the rings that join two ports.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/net/arp.hpp"
#include "lib/net/checksum.hpp"
#include "lib/net/ethernet.hpp"
#include "lib/net/ipv4.hpp"
#include "lib/net/ipv6.hpp"
#include "lib/net/nd.hpp"
#include "tests/eal/net_ring.hpp"

namespace cairn::pmd {

class NetRingStrangers : public NetRing {
protected:
    static net::IpAddress there() { return net::IpAddress::parse("10.5.0.2").value(); }
    [[nodiscard]] Worker& sender() const { return *sides[0][0]; }
    [[nodiscard]] const net::MacAddress& target() const { return devices[1]->mac(); }

    // Sends as many frames as the ring holds at once, then gives the receivers a turn, until `count` have passed.
    template <class Make>
    void flood(std::size_t count, Make&& make, Duration turn = microseconds(20)) {
        for (std::size_t sent = 0; sent < count;) {
            const std::size_t took = sender().port.transmit_frames(
                std::min<std::size_t>(count - sent, 16),
                [&](std::size_t i, std::span<std::uint8_t> frame) { return make(sent + i, frame); });
            ASSERT_GT(took, 0U);
            sent += took;
            for (auto& worker : sides[1]) {
                worker->turn(now);
            }
            now = now + turn;
        }
    }
    // Writes a UDP datagram to a port that is not RoCE's.
    std::size_t write_foreign(std::span<std::uint8_t> frame) const {
        std::fill_n(frame.begin(), 60, std::uint8_t{0});
        net::emit_at(frame.data(), net::EthernetHeader{target(), devices[0]->mac(), net::kEtherTypeIpv4});
        net::Ipv4Header ip;
        ip.total_bytes = 46;
        ip.protocol = net::kProtocolUdp;
        ip.source = sender().port.local_address();
        ip.destination = there();
        net::emit_at(frame.data() + 14, ip);
        frame[14 + 20 + 3] = 53;
        frame[14 + 20 + 5] = 26;
        return 60;
    }
    static std::size_t write_arp(std::span<std::uint8_t> frame, const net::IpAddress& from, const net::MacAddress& mac,
                                 const net::IpAddress& to) {
        std::fill_n(frame.begin(), 60, std::uint8_t{0});
        net::emit_at(frame.data(), net::EthernetHeader{net::kBroadcastMac, mac, net::kEtherTypeArp});
        net::ArpMessage arp;
        arp.sender_ip = from;
        arp.sender_mac = mac;
        arp.target_ip = to;
        net::emit_at(frame.data() + 14, arp);
        return 60;
    }
    // Writes an advertisement that must not replace a known MAC address.
    std::size_t write_advertisement(std::span<std::uint8_t> frame, const net::IpAddress& of,
                                    const net::MacAddress& mac) const {
        net::emit_at(frame.data(), net::EthernetHeader{target(), mac, net::kEtherTypeIpv6});
        net::Ipv6Header ip;
        ip.payload_bytes = net::NeighbourMessage::kBytes;
        ip.next_header = net::kProtocolIcmpV6;
        ip.hop_limit = net::kNeighbourHopLimit;
        ip.source = of;
        ip.destination = sides[1][0]->port.local_address();
        net::emit_at(frame.data() + 14, ip);
        net::NeighbourMessage message;
        message.advertisement = true;
        message.replaces = false;
        message.target = of;
        message.mac = mac;
        const auto at = frame.subspan(14 + net::Ipv6Header::kBytes, net::NeighbourMessage::kBytes);
        net::emit_at(at.data(), message);
        net::ChecksumSum sum;
        sum.add_pseudo_header(ip.source, ip.destination, net::kProtocolIcmpV6, ip.payload_bytes);
        sum.add(at);
        message.checksum = sum.checksum();
        net::emit_at(at.data(), message);
        return 14 + net::Ipv6Header::kBytes + net::NeighbourMessage::kBytes;
    }
    // Writes a datagram of one BTH from any address and port; its ICRC is correct or not.
    std::size_t write_datagram(std::span<std::uint8_t> frame, const port::PathKey& key, std::uint32_t qpn, bool whole,
                               const net::MacAddress& mac) const {
        port::Path path(key);
        path.resolve(mac, target());
        std::uint8_t* const bth = frame.data() + path.lower_bytes();
        std::memset(bth, 0, 16);
        bth[0] = wire::kUdSendOnly;
        bth[5] = static_cast<std::uint8_t>(qpn >> 16U);
        bth[6] = static_cast<std::uint8_t>(qpn >> 8U);
        bth[7] = static_cast<std::uint8_t>(qpn);
        path.seal(bth, 16);
        bth[12] = static_cast<std::uint8_t>(bth[12] ^ (whole ? 0 : 1));
        return path.lower_bytes() + 16;
    }
    static net::MacAddress mac_of(const port::Path& path) {
        std::array<std::uint8_t, 128> buffer{};
        path.write_lower_headers(buffer.data() + path.lower_bytes(), 16);
        net::MacAddress mac;
        std::memcpy(mac.octets.data(), buffer.data(), mac.octets.size());
        return mac;
    }
};

}  // namespace cairn::pmd
