// Addresses as values: a MAC address, and an IP address that is IPv4 or IPv6.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/result.hpp"

namespace cairn::net {

struct MacAddress {
    std::array<std::uint8_t, 6> octets{};

    // Parses "02:00:5e:10:00:01". Any other text gives an Error that quotes it.
    static Result<MacAddress> parse(std::string_view text);
    [[nodiscard]] std::string text() const;
    // Returns true if the group bit is set: multicast and broadcast.
    [[nodiscard]] constexpr bool is_group() const noexcept { return (octets[0] & 1U) != 0; }
    // Returns true if one station can own the address: it is no group and not all zero.
    [[nodiscard]] constexpr bool is_station() const noexcept { return !is_group() && *this != MacAddress{}; }

    friend constexpr auto operator<=>(const MacAddress&, const MacAddress&) noexcept = default;
};

constexpr MacAddress kBroadcastMac{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

// Sixteen octets in network order. An IPv4 address is held as ::ffff:a.b.c.d (RFC 4291, 2.5.5.2), which is also the
// form of an IPv4 GID in RoCEv2.
class IpAddress {
public:
    constexpr IpAddress() noexcept = default;
    static constexpr IpAddress from_v4(std::uint32_t host_order) noexcept {
        IpAddress address;
        address.octets_[10] = 0xff;
        address.octets_[11] = 0xff;
        for (std::size_t i = 0; i < 4; ++i) {
            address.octets_[12 + i] = static_cast<std::uint8_t>(host_order >> (8 * (3 - i)));
        }
        return address;
    }
    static constexpr IpAddress from_v6(const std::array<std::uint8_t, 16>& octets) noexcept {
        IpAddress address;
        address.octets_ = octets;
        return address;
    }
    // Parses "192.0.2.1" or "2001:db8::1". Any other text gives an Error that quotes it.
    static Result<IpAddress> parse(std::string_view text);

    [[nodiscard]] constexpr bool is_v4() const noexcept {
        for (std::size_t i = 0; i < 10; ++i) {
            if (octets_[i] != 0) {
                return false;
            }
        }
        return octets_[10] == 0xff && octets_[11] == 0xff;
    }
    [[nodiscard]] constexpr std::uint32_t v4() const noexcept {  // host order; is_v4() must hold
        return (std::uint32_t{octets_[12]} << 24U) | (std::uint32_t{octets_[13]} << 16U) |
               (std::uint32_t{octets_[14]} << 8U) | octets_[15];
    }
    [[nodiscard]] constexpr const std::array<std::uint8_t, 16>& octets() const noexcept { return octets_; }
    // Returns the octets as two words, for hashing. Their values depend on the byte order of the machine.
    [[nodiscard]] constexpr std::array<std::uint64_t, 2> words() const noexcept {
        return std::bit_cast<std::array<std::uint64_t, 2>>(octets_);
    }
    [[nodiscard]] std::string text() const;

    [[nodiscard]] constexpr bool is_unspecified() const noexcept { return is_v4() ? v4() == 0 : *this == IpAddress{}; }
    // Returns true for multicast and for the limited broadcast of IPv4.
    [[nodiscard]] constexpr bool is_group() const noexcept {
        return is_v4() ? octets_[12] >= 224 && (octets_[12] < 240 || v4() == 0xffffffffU) : octets_[0] == 0xff;
    }
    // Returns the Ethernet address of frames to this multicast group (RFC 1112, 6.4; RFC 2464, 7).
    [[nodiscard]] constexpr MacAddress group_mac() const noexcept {
        if (is_v4()) {
            return {{0x01, 0x00, 0x5e, static_cast<std::uint8_t>(octets_[13] & 0x7fU), octets_[14], octets_[15]}};
        }
        return {{0x33, 0x33, octets_[12], octets_[13], octets_[14], octets_[15]}};
    }
    // Returns true for fe80::/10, which is always on the link.
    [[nodiscard]] constexpr bool is_v6_link_local() const noexcept {
        return octets_[0] == 0xfe && (octets_[1] & 0xc0U) == 0x80;
    }
    // Returns the address that stands for the host where hosts share something scarce. An IPv6 host may have any number
    // of addresses in its 64-bit network, so that the network counts as one host. Link-local addresses are not
    // shortened.
    [[nodiscard]] constexpr IpAddress share_holder() const noexcept {
        IpAddress holder = *this;
        if (!is_v4() && !is_v6_link_local()) {
            std::fill(holder.octets_.begin() + 8, holder.octets_.end(), std::uint8_t{0});
        }
        return holder;
    }
    // Returns true if one host can own the address.
    [[nodiscard]] constexpr bool is_station() const noexcept { return !is_unspecified() && !is_group(); }
    // Returns true if both are of one family and their first `prefix_bits` (of 32 or 128) are equal.
    [[nodiscard]] bool shares_prefix(const IpAddress& other, std::uint8_t prefix_bits) const noexcept;

    friend constexpr auto operator<=>(const IpAddress&, const IpAddress&) noexcept = default;

private:
    std::array<std::uint8_t, 16> octets_{};
};

}  // namespace cairn::net
