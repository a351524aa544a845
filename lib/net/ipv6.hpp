// IPv6 header: 40 bytes (RFC 8200). Extension headers are not supported: the next header must be the upper layer.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "lib/base/endian.hpp"
#include "lib/net/address.hpp"
#include "lib/net/parsed.hpp"

namespace cairn::net {

struct RawIpv6 {
    Be32 version_class_flow;  // version 4, traffic class 8, flow label 20
    Be16 payload_bytes;
    std::uint8_t next_header;
    std::uint8_t hop_limit;
    std::array<std::uint8_t, 16> source;
    std::array<std::uint8_t, 16> destination;
};
static_assert(sizeof(RawIpv6) == 40 && alignof(RawIpv6) == 1);

struct Ipv6Header {
    using Raw = RawIpv6;
    static constexpr std::size_t kBytes = sizeof(Raw);

    std::uint8_t traffic_class = 0;
    std::uint32_t flow_label = 0;     // 20 bits
    std::uint16_t payload_bytes = 0;  // of the data after the header
    std::uint8_t next_header = 0;
    std::uint8_t hop_limit = 64;
    IpAddress source{};
    IpAddress destination{};

    // Parses the header at the start of `packet`, which reaches at least to the end of the IP packet. Refuses an
    // IPv4-mapped address: no host has it on the wire (RFC 4291, 2.5.5.2), and it would mean IPv4 in an IpAddress.
    [[nodiscard]] static Parsed<Ipv6Header> parse(std::span<const std::uint8_t> packet) noexcept;
    // Writes all 40 bytes. Both addresses are IPv6.
    void emit(Raw& raw) const noexcept;

    friend bool operator==(const Ipv6Header&, const Ipv6Header&) noexcept = default;
};

// True for headers that stand between IPv6 and the upper layer, kIpv6Fragment included.
constexpr std::uint8_t kIpv6Fragment = 44;
[[nodiscard]] constexpr bool is_ipv6_extension(std::uint8_t next_header) noexcept {
    return next_header == 0 || next_header == 43 || next_header == kIpv6Fragment || next_header == 51 ||
           next_header == 60 || next_header == 135 || next_header == 139 || next_header == 140;
}

}  // namespace cairn::net
