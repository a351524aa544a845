// The lower headers both ways: golden bytes, emission over dirty memory, every truncation, and refusals.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "lib/net/arp.hpp"
#include "lib/net/checksum.hpp"
#include "lib/net/ethernet.hpp"
#include "lib/net/ipv4.hpp"
#include "lib/net/ipv6.hpp"
#include "lib/net/nd.hpp"
#include "lib/net/udp.hpp"

namespace cairn::net {
namespace {

using Bytes = std::vector<std::uint8_t>;

// Checks that the header parsed from `golden` gives the same bytes again over any memory. Each truncation is refused.
template <class Header>
Header both_ways(const Bytes& golden, const Bytes& behind = {}) {
    Bytes whole = golden;
    whole.insert(whole.end(), behind.begin(), behind.end());
    const auto parsed = Header::parse(whole);
    EXPECT_TRUE(parsed.ok());
    Bytes written(Header::kBytes, 0xa5);
    emit_at(written.data(), parsed.value());
    EXPECT_EQ(written, golden);
    for (std::size_t bytes = 0; bytes < golden.size(); ++bytes) {
        EXPECT_FALSE(Header::parse(std::span(whole).first(bytes)).ok()) << bytes;
    }
    return parsed.value();
}

TEST(Formats, Ethernet) {
    const auto header = both_ways<EthernetHeader>({2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd});
    EXPECT_EQ(header.type, kEtherTypeIpv6);
    EXPECT_EQ(header.source.text(), "02:00:00:00:00:02");
}

TEST(Formats, Ipv4) {
    // Checksum by hand: RFC 1071 over the other nine words.
    const auto header = both_ways<Ipv4Header>({0x45, 0x02, 0x00, 0x1c, 0x12, 0x34, 0x40, 0x00, 0x40, 0x11,
                                               0x14, 0x99, 0x0a, 0x00, 0x00, 0x01, 0x0a, 0x00, 0x00, 0x02},
                                              Bytes(8, 0));
    EXPECT_EQ(header.total_bytes, 28);
    EXPECT_EQ(header.id, 0x1234);
    EXPECT_EQ(header.traffic_class, 2);
    EXPECT_EQ(header.protocol, kProtocolUdp);
    EXPECT_EQ(header.source.text(), "10.0.0.1");
    EXPECT_FALSE(header.is_fragment());
}

TEST(Formats, Ipv4RefusesVersionOptionsLengthAndChecksum) {
    Ipv4Header good;
    good.total_bytes = 40;
    good.protocol = kProtocolUdp;
    good.source = IpAddress::from_v4(0x0a000001);
    good.destination = IpAddress::from_v4(0x0a000002);
    const auto reason_of = [&good](auto&& change) {
        Bytes packet(40, 0);
        Ipv4Header header = good;
        emit_at(packet.data(), header);
        change(packet);
        const auto parsed = Ipv4Header::parse(packet);
        return parsed.ok() ? Drop::Count : parsed.reason();
    };
    EXPECT_EQ(reason_of([](Bytes&) {}), Drop::Count);
    EXPECT_EQ(reason_of([](Bytes& packet) { packet[0] = 0x55; }), Drop::BadVersion);
    EXPECT_EQ(reason_of([](Bytes& packet) { packet[0] = 0x46; }), Drop::Options);
    EXPECT_EQ(reason_of([](Bytes& packet) { packet[0] = 0x44; }), Drop::BadLength);
    EXPECT_EQ(reason_of([](Bytes& packet) { packet[10] ^= 1; }), Drop::BadChecksum);
    EXPECT_EQ(reason_of([](Bytes& packet) { packet.resize(39); }), Drop::BadLength);
}

TEST(Formats, Ipv6) {
    const auto header =
        both_ways<Ipv6Header>({0x60, 0x21, 0x23, 0x45, 0x00, 0x08, 0x11, 0x40, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                               0,    0,    0,    1,    0xfd, 0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2},
                              Bytes(8, 0));
    EXPECT_EQ(header.traffic_class, 2);
    EXPECT_EQ(header.flow_label, 0x12345U);
    EXPECT_EQ(header.payload_bytes, 8);
    EXPECT_EQ(header.destination.text(), "fd00::2");
}

TEST(Formats, Ipv6RefusesMappedAddressesVersionAndLength) {
    Bytes packet{0x60, 0, 0, 0, 0, 0, 0x11, 0x40};
    packet.resize(40, 0);
    packet[8] = 0xfd;
    packet[24] = 0xfd;
    EXPECT_TRUE(Ipv6Header::parse(packet).ok());
    Bytes other = packet;
    other[0] = 0x40;
    EXPECT_EQ(Ipv6Header::parse(other).reason(), Drop::BadVersion);
    other = packet;
    other[5] = 1;
    EXPECT_EQ(Ipv6Header::parse(other).reason(), Drop::BadLength);
    other = packet;
    other[8] = 0;
    other[18] = other[19] = 0xff;
    EXPECT_EQ(Ipv6Header::parse(other).reason(), Drop::BadAddress);
}

TEST(Formats, Udp) {
    const auto header = both_ways<UdpHeader>({0xc0, 0x00, 0x12, 0xb7, 0x00, 0x0a, 0xbe, 0xef}, {1, 2});
    EXPECT_EQ(header.destination_port, kRoceUdpPort);
    EXPECT_EQ(header.bytes, 10);
    EXPECT_EQ(UdpHeader::parse(Bytes{0, 1, 0, 2, 0, 7, 0, 0}).reason(), Drop::BadLength);
    EXPECT_EQ(UdpHeader::parse(Bytes{0, 1, 0, 2, 0, 9, 0, 0}).reason(), Drop::BadLength);
}

TEST(Formats, Arp) {
    const Bytes golden{0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 2, 0, 0, 0, 0, 2, 10, 0, 0, 2};
    const auto message = both_ways<ArpMessage>(golden);
    EXPECT_EQ(message.operation, ArpOperation::Reply);
    Bytes other = golden;
    other[7] = 3;
    EXPECT_EQ(ArpMessage::parse(other).reason(), Drop::BadNeighbour);
    other = golden;
    other[4] = 8;
    EXPECT_EQ(ArpMessage::parse(other).reason(), Drop::BadNeighbour);
    other = golden;
    other[8] = 0xff;
    EXPECT_EQ(ArpMessage::parse(other).reason(), Drop::BadAddress);
    other = golden;
    other[3] = 1;
    EXPECT_EQ(ArpMessage::parse(other).reason(), Drop::Unsupported);
}

class NeighbourDiscovery : public testing::Test {
protected:
    NeighbourDiscovery() {
        ip.payload_bytes = NeighbourMessage::kBytes;
        ip.next_header = kProtocolIcmpV6;
        ip.hop_limit = kNeighbourHopLimit;
        ip.source = IpAddress::parse("fd00::1").value();
        ip.destination = solicited_node_group(IpAddress::parse("fd00::2").value());
        message.target = IpAddress::parse("fd00::2").value();
        message.mac = MacAddress{{2, 0, 0, 0, 0, 1}};
    }
    // Returns the message with the correct checksum over its current bytes.
    Bytes bytes_of(std::size_t extra_option_bytes = 0) {
        Bytes bytes(NeighbourMessage::kBytes + extra_option_bytes, 0);
        message.checksum = 0;
        emit_at(bytes.data(), message);
        seal(bytes);
        return bytes;
    }
    void seal(Bytes& bytes) const {
        bytes[2] = bytes[3] = 0;
        ChecksumSum sum;
        sum.add_pseudo_header(ip.source, ip.destination, kProtocolIcmpV6, static_cast<std::uint32_t>(bytes.size()));
        sum.add(bytes);
        bytes[2] = static_cast<std::uint8_t>(sum.checksum() >> 8U);
        bytes[3] = static_cast<std::uint8_t>(sum.checksum());
    }
    [[nodiscard]] Drop reason_of(const Bytes& bytes) const {
        const auto parsed = NeighbourMessage::parse(ip, bytes);
        return parsed.ok() ? Drop::Count : parsed.reason();
    }
    Ipv6Header ip;
    NeighbourMessage message;
};

TEST_F(NeighbourDiscovery, ASolicitationIsUnderstood) {
    const Bytes bytes = bytes_of();
    const auto parsed = NeighbourMessage::parse(ip, bytes);
    ASSERT_TRUE(parsed.ok());
    EXPECT_FALSE(parsed.value().advertisement);
    EXPECT_EQ(parsed.value().mac, message.mac);
    EXPECT_EQ(parsed.value().target, message.target);
}

TEST_F(NeighbourDiscovery, WhatCameThroughARouterIsRefused) {
    ip.hop_limit = 254;
    EXPECT_EQ(reason_of(bytes_of()), Drop::BadNeighbour);
}

TEST_F(NeighbourDiscovery, OptionsWithoutLengthOrBeyondTheEndAreRefused) {
    Bytes bytes = bytes_of();
    bytes[25] = 0;
    seal(bytes);
    EXPECT_EQ(reason_of(bytes), Drop::BadNeighbour);
    bytes[25] = 2;
    seal(bytes);
    EXPECT_EQ(reason_of(bytes), Drop::BadNeighbour);
    bytes = bytes_of(1);
    EXPECT_EQ(reason_of(bytes), Drop::BadNeighbour);
}

TEST_F(NeighbourDiscovery, AGroupTargetAGroupMacAndABadChecksumAreRefused) {
    message.target = all_nodes_group();
    EXPECT_EQ(reason_of(bytes_of()), Drop::BadNeighbour);
    message.target = IpAddress::parse("fd00::2").value();
    message.mac = MacAddress{{0x33, 0x33, 0, 0, 0, 1}};
    EXPECT_EQ(reason_of(bytes_of()), Drop::BadNeighbour);
    message.mac = MacAddress{{2, 0, 0, 0, 0, 1}};
    Bytes bytes = bytes_of();
    bytes[30] ^= 1;
    EXPECT_EQ(reason_of(bytes), Drop::BadChecksum);
}

TEST_F(NeighbourDiscovery, EveryTruncationIsRefused) {
    const Bytes whole = bytes_of();
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
        EXPECT_NE(reason_of(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes))), Drop::Count);
    }
}

TEST(Checksum, OfRfc1071AndOfAnOddNumberOfBytes) {
    const Bytes example{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
    ChecksumSum sum;
    sum.add(example);
    EXPECT_EQ(sum.checksum(), static_cast<std::uint16_t>(~0xddf2U));
    ChecksumSum odd;
    odd.add(Bytes{0x12, 0x34, 0x56});
    ChecksumSum even;
    even.add(Bytes{0x12, 0x34, 0x56, 0x00});
    EXPECT_EQ(odd.checksum(), even.checksum());
}

TEST(Groups, FollowTheirRfcs) {
    const IpAddress address = IpAddress::parse("fd00::1:2345:6789").value();
    EXPECT_EQ(solicited_node_group(address).text(), "ff02::1:ff45:6789");
    EXPECT_EQ(group_mac(solicited_node_group(address)).text(), "33:33:ff:45:67:89");
    EXPECT_EQ(all_nodes_group().text(), "ff02::1");
}

}  // namespace
}  // namespace cairn::net
