// IPv6 neighbour discovery: solicitation and advertisement with the link-layer address option
// (RFC 4861, 4.3, 4.4, 4.6.1), 24 or 32 bytes of ICMPv6.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "lib/base/endian.hpp"
#include "lib/net/address.hpp"
#include "lib/net/ipv6.hpp"
#include "lib/net/parsed.hpp"

namespace cairn::net {

constexpr std::uint8_t kIcmpV6Solicitation = 135;
constexpr std::uint8_t kIcmpV6Advertisement = 136;
constexpr std::uint8_t kNeighbourHopLimit = 255;  // shows that no router forwarded the message (RFC 4861, 3.1)

struct RawNeighbour {
    std::uint8_t type;
    std::uint8_t code;
    Be16 checksum;
    Be32 flags;  // of an advertisement: router, solicited, override in the top bits
    std::array<std::uint8_t, 16> target;
};
static_assert(sizeof(RawNeighbour) == 24 && alignof(RawNeighbour) == 1);

struct RawLinkLayerOption {
    std::uint8_t type;  // 1 source (solicitation), 2 target (advertisement)
    std::uint8_t words;
    std::array<std::uint8_t, 6> mac;
};
static_assert(sizeof(RawLinkLayerOption) == 8 && alignof(RawLinkLayerOption) == 1);

struct RawNeighbourWithOption {
    RawNeighbour message;
    RawLinkLayerOption option;
};
static_assert(sizeof(RawNeighbourWithOption) == 32 && alignof(RawNeighbourWithOption) == 1);

struct NeighbourMessage {
    using Raw = RawNeighbourWithOption;
    static constexpr std::size_t kBytes = sizeof(Raw);

    bool advertisement = false;
    bool router = false;
    bool solicited = false;  // the advertisement answers a solicitation
    bool replaces = true;    // the MAC replaces one that is already known
    std::uint16_t checksum = 0;
    IpAddress target{};
    std::optional<MacAddress> mac{};  // from the option that belongs to the message's type

    // Judges a message by the demands of RFC 4861, 7.1.1 and 7.1.2: hop limit, checksum, code, sizes, options,
    // addresses. `ip` is its header, `message` the ICMPv6 message.
    [[nodiscard]] static Parsed<NeighbourMessage> parse(const Ipv6Header& ip,
                                                        std::span<const std::uint8_t> message) noexcept;
    // Writes the message and the option; `mac` must be set. Writes the checksum field unchanged.
    void emit(Raw& raw) const noexcept;

    friend bool operator==(const NeighbourMessage&, const NeighbourMessage&) noexcept = default;
};

// Returns ff02::1:ff00:0 with the last three octets of `address`. The owner of the address listens to this group (RFC
// 4291, 2.7.1).
[[nodiscard]] IpAddress solicited_node_group(const IpAddress& address) noexcept;
// Returns ff02::1.
[[nodiscard]] IpAddress all_nodes_group() noexcept;
// Returns 33:33 and the last four octets of the group (RFC 2464, 7).
[[nodiscard]] MacAddress group_mac(const IpAddress& v6_group) noexcept;

}  // namespace cairn::net
