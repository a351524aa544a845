// IPv4 header without options: 20 bytes (RFC 791).
#pragma once

#include <cstdint>
#include <span>

#include "lib/base/endian.hpp"
#include "lib/net/address.hpp"
#include "lib/net/parsed.hpp"

namespace cairn::net {

struct RawIpv4 {
    std::uint8_t version_and_words;
    std::uint8_t traffic_class;
    Be16 total_bytes;
    Be16 id;
    Be16 flags_and_offset;
    std::uint8_t ttl;
    std::uint8_t protocol;
    Be16 checksum;
    Be32 source;
    Be32 destination;
};
static_assert(sizeof(RawIpv4) == 20 && alignof(RawIpv4) == 1);

struct Ipv4Header {
    using Raw = RawIpv4;
    static constexpr std::size_t kBytes = sizeof(Raw);
    static constexpr std::uint16_t kDontFragment = 0x4000;

    std::uint8_t traffic_class = 0;
    std::uint16_t total_bytes = 0;  // of the header and the following data
    std::uint16_t id = 0;
    std::uint16_t flags_and_offset = kDontFragment;
    std::uint8_t ttl = 64;
    std::uint8_t protocol = 0;
    IpAddress source{};
    IpAddress destination{};

    // Parses the header at the start of `packet`, which reaches at least to the end of the IP packet. Padding of the
    // link may follow.
    [[nodiscard]] static Parsed<Ipv4Header> parse(std::span<const std::uint8_t> packet) noexcept;
    // Writes all 20 bytes with the right checksum. Both addresses are IPv4.
    void emit(Raw& raw) const noexcept;

    // Returns true if More Fragments is set or the offset is not zero.
    [[nodiscard]] bool is_fragment() const noexcept { return (flags_and_offset & 0x3fffU) != 0; }

    friend bool operator==(const Ipv4Header&, const Ipv4Header&) noexcept = default;
};

}  // namespace cairn::net
