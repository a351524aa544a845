#include "lib/ibverbs/address_gids.hpp"

#include <algorithm>

namespace cairn::ibverbs {

namespace {

// The interface part of an IPv4 device's link-local GID is an EUI-64 of the locally administered Ethernet address
// 02:ca:a:b:c:d (RFC 4291, appendix A): fe80::00ca:XXff:feXX:XXXX.
constexpr std::array<std::uint8_t, 10> kV4LinkLocal{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0xca};

std::array<std::uint8_t, 16> link_local_of_v4(std::uint32_t v4) noexcept {
    std::array<std::uint8_t, 16> octets{};
    std::copy(kV4LinkLocal.begin(), kV4LinkLocal.end(), octets.begin());
    octets[10] = static_cast<std::uint8_t>(v4 >> 24U);
    octets[11] = 0xff;
    octets[12] = 0xfe;
    octets[13] = static_cast<std::uint8_t>(v4 >> 16U);
    octets[14] = static_cast<std::uint8_t>(v4 >> 8U);
    octets[15] = static_cast<std::uint8_t>(v4);
    return octets;
}

}  // namespace

std::optional<net::IpAddress> gid_at(const net::IpAddress& device, int index) noexcept {
    if (index == kGidLinkLocal && device.is_v4()) {
        return net::IpAddress::from_v6(link_local_of_v4(device.v4()));
    }
    const int own = device.is_v4() ? kGidV4 : device.is_v6_link_local() ? kGidLinkLocal : kGidV6;
    return index == own ? std::optional(device) : std::nullopt;
}

net::IpAddress address_of_gid(const net::IpAddress& gid) noexcept {
    const auto& octets = gid.octets();
    const bool stands_for_v4 = std::equal(kV4LinkLocal.begin(), kV4LinkLocal.end(), octets.begin()) &&
                               octets[11] == 0xff && octets[12] == 0xfe;
    if (!stands_for_v4) {
        return gid;
    }
    return net::IpAddress::from_v4(std::uint32_t{octets[10]} << 24U | std::uint32_t{octets[13]} << 16U |
                                   std::uint32_t{octets[14]} << 8U | octets[15]);
}

std::array<std::uint8_t, 8> guid_of(const net::IpAddress& device) noexcept {
    const auto octets = device.is_v4() ? link_local_of_v4(device.v4()) : device.octets();
    std::array<std::uint8_t, 8> guid;
    std::copy(octets.begin() + 8, octets.end(), guid.begin());
    return guid;
}

}  // namespace cairn::ibverbs
