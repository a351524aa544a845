#include "lib/wire/icrc.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "lib/base/assert.hpp"

namespace cairn::wire {

namespace {

constexpr std::size_t kOnesBytes = 8;  // in place of the LRH, which RoCEv2 does not have
constexpr std::size_t kUdpBytes = 8;
constexpr std::size_t kIpv4Bytes = 20;
constexpr std::size_t kIpv6Bytes = 40;
constexpr std::uint8_t kOnes = 0xff;

std::size_t ip_header_bytes(std::uint8_t first_octet) noexcept {
    return (first_octet >> 4U) == 4 ? kIpv4Bytes : kIpv6Bytes;
}

// Fields that routers may change read as ones.
void mask_ip_and_udp(std::uint8_t* ip) noexcept {
    const std::size_t ip_bytes = ip_header_bytes(ip[0]);
    if (ip_bytes == kIpv4Bytes) {
        ip[1] = kOnes;            // TOS
        ip[8] = kOnes;            // TTL
        ip[10] = ip[11] = kOnes;  // header checksum
    } else {
        ip[0] |= 0x0fU;  // traffic class, flow label
        ip[1] = ip[2] = ip[3] = kOnes;
        ip[7] = kOnes;  // hop limit
    }
    ip[ip_bytes + 6] = ip[ip_bytes + 7] = kOnes;  // UDP checksum
}

}  // namespace

std::uint32_t icrc_lower_state(std::span<const std::uint8_t> ip_and_udp) noexcept {
    std::array<std::uint8_t, kOnesBytes + kIpv6Bytes + kUdpBytes> masked;
    const std::size_t bytes = ip_header_bytes(ip_and_udp[0]) + kUdpBytes;
    CAIRN_ASSERT(ip_and_udp.size() >= bytes);
    std::fill_n(masked.begin(), kOnesBytes, kOnes);
    std::memcpy(masked.data() + kOnesBytes, ip_and_udp.data(), bytes);
    mask_ip_and_udp(masked.data() + kOnesBytes);
    return crc32(0, masked.data(), kOnesBytes + bytes);
}

std::uint32_t icrc_finish(std::uint32_t lower_state, const std::uint8_t* bth, std::size_t count) noexcept {
    constexpr std::size_t kBeforeMask = 4;
    const std::uint32_t state = crc32(lower_state, bth, kBeforeMask);
    // The CRC adds a byte to the low end of its state. So the ones that byte 4 lacks can be added there.
    return crc32(state ^ (bth[kBeforeMask] ^ kOnes), bth + kBeforeMask, count - kBeforeMask);
}

std::uint32_t icrc_reference(std::span<const std::uint8_t> ip_packet) noexcept {
    std::vector<std::uint8_t> masked(kOnesBytes, kOnes);
    masked.insert(masked.end(), ip_packet.begin(), ip_packet.end());
    std::uint8_t* ip = masked.data() + kOnesBytes;
    mask_ip_and_udp(ip);
    ip[ip_header_bytes(ip[0]) + kUdpBytes + 4] = kOnes;
    return crc32(0, masked.data(), masked.size());
}

}  // namespace cairn::wire
