// The Internet checksum (RFC 1071), and the pseudo-headers that UDP and ICMPv6 put in front of it.
#pragma once

#include <cstdint>
#include <span>

#include "lib/net/address.hpp"

namespace cairn::net {

constexpr std::uint8_t kProtocolIcmp = 1;
constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::uint8_t kProtocolIcmpV6 = 58;

// The one's complement sum of big-endian 16-bit words, not yet folded. An odd last byte counts as if a zero byte
// followed it. So only the last part added may have an odd length.
class ChecksumSum {
public:
    void add(std::span<const std::uint8_t> bytes) noexcept;
    void add_word(std::uint16_t word) noexcept { sum_ += word; }
    // Adds addresses, protocol and upper-layer length (RFC 768; RFC 8200, 8.1).
    void add_pseudo_header(const IpAddress& source, const IpAddress& destination, std::uint8_t protocol,
                           std::uint32_t upper_bytes) noexcept;

    // Returns the value of the checksum field, in host order. The field itself was added as zero.
    [[nodiscard]] std::uint16_t checksum() const noexcept { return static_cast<std::uint16_t>(~folded()); }
    // Returns true if the sum covers a checksum field with the right value.
    [[nodiscard]] bool is_right() const noexcept { return folded() == 0xffffU; }

private:
    [[nodiscard]] std::uint16_t folded() const noexcept;

    std::uint64_t sum_ = 0;
};

}  // namespace cairn::net
