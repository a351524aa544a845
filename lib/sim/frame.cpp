#include "lib/sim/frame.hpp"

#include <array>
#include <cstddef>
#include <cstring>

#include "lib/base/assert.hpp"
#include "lib/wire/bth.hpp"

namespace cairn::sim {

namespace {

constexpr std::size_t kIp = port::Path::kEthernetBytes;

net::IpAddress address_at(const Frame& frame, std::size_t v4_offset, std::size_t v6_offset) noexcept {
    const std::uint8_t* at = frame.bytes.data() + kIp + (frame.is_v4() ? v4_offset : v6_offset);
    if (frame.is_v4()) {
        return net::IpAddress::from_v4((std::uint32_t{at[0]} << 24U) | (std::uint32_t{at[1]} << 16U) |
                                       (std::uint32_t{at[2]} << 8U) | at[3]);
    }
    std::array<std::uint8_t, 16> octets;
    std::memcpy(octets.data(), at, octets.size());
    return net::IpAddress::from_v6(octets);
}

void write_ipv4_checksum(std::uint8_t* ip) noexcept {
    ip[10] = ip[11] = 0;
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < 20; i += 2) {
        sum += (std::uint32_t{ip[i]} << 8U) + ip[i + 1];
    }
    while (sum > 0xffffU) {
        sum = (sum & 0xffffU) + (sum >> 16U);
    }
    ip[10] = static_cast<std::uint8_t>(~sum >> 8U);
    ip[11] = static_cast<std::uint8_t>(~sum);
}

}  // namespace

net::IpAddress Frame::source() const noexcept {
    return address_at(*this, 12, 8);
}

net::IpAddress Frame::destination() const noexcept {
    return address_at(*this, 16, 24);
}

std::uint16_t Frame::udp_source_port() const noexcept {
    const std::uint8_t* udp = bytes.data() + lower_bytes() - 8;
    return static_cast<std::uint16_t>((udp[0] << 8U) | udp[1]);
}

Qpn Frame::dest_qpn() const noexcept {
    const std::size_t at = lower_bytes() + offsetof(wire::RawBth, dest_qpn);
    Be24 qpn{};
    if (bytes.size() < at + sizeof(qpn)) {
        return {};
    }
    std::memcpy(&qpn, bytes.data() + at, sizeof(qpn));
    return Qpn{qpn.get()};
}

std::uint8_t Frame::ecn() const noexcept {
    return static_cast<std::uint8_t>((is_v4() ? bytes[kIp + 1] : bytes[kIp + 1] >> 4U) & 3U);
}

bool Frame::mark_congestion() noexcept {
    if (ecn() == port::kNotEct) {
        return false;
    }
    std::uint8_t* ip = bytes.data() + kIp;
    ip[1] = static_cast<std::uint8_t>(ip[1] | (is_v4() ? 0x03U : 0x30U));
    if (is_v4()) {
        write_ipv4_checksum(ip);
    }
    return true;
}

void Frame::flip_bit(std::uint64_t choice) noexcept {
    const std::span<std::uint8_t> payload = udp_payload();
    CAIRN_ASSERT(payload.size() > kUncoveredByte + 1);
    std::size_t byte = (choice / 8) % (payload.size() - 1);
    byte += byte >= kUncoveredByte ? 1 : 0;
    payload[byte] = static_cast<std::uint8_t>(payload[byte] ^ (1U << (choice % 8)));
    damaged = true;
}

}  // namespace cairn::sim
