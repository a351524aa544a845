// The invariant CRC of RoCEv2: CRC-32 (Ethernet polynomial, reflected) over 8 bytes of ones, IP and UDP headers, BTH,
// extension headers and payload. Fields that routers may change read as ones. The ICRC is stored little-endian as the
// last four bytes (IBTA vol. 1, annex A17, A17.3.3; 7.8.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cairn::wire {

constexpr std::size_t kIcrcBytes = 4;

// Returns the CRC-32 of `bytes` continued from `crc` (0 to start), complemented at both ends as usual.
[[nodiscard]] std::uint32_t crc32(std::uint32_t crc, const std::uint8_t* bytes, std::size_t count) noexcept;

// Returns the state over the eight ones, the masked IPv4 or IPv6 header and the masked UDP header. `ip_and_udp` starts
// at the IP header (without IPv4 options: 20 or 40 bytes). The 8 bytes of UDP follow it.
[[nodiscard]] std::uint32_t icrc_lower_state(std::span<const std::uint8_t> ip_and_udp) noexcept;

// Continues a state over BTH ... payload. Byte 4 of the BTH counts as ones. `count` excludes the four ICRC bytes and is
// at least 12.
[[nodiscard]] std::uint32_t icrc_finish(std::uint32_t lower_state, const std::uint8_t* bth, std::size_t count) noexcept;

// Returns the ICRC by the reference form: one masked copy, one CRC. `ip_packet` is IP header ... payload without the
// ICRC.
[[nodiscard]] std::uint32_t icrc_reference(std::span<const std::uint8_t> ip_packet) noexcept;

}  // namespace cairn::wire
