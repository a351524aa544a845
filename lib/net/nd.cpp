#include "lib/net/nd.hpp"

#include <algorithm>

#include "lib/net/checksum.hpp"

namespace cairn::net {

namespace {

constexpr std::uint8_t kSourceOption = 1;
constexpr std::uint8_t kTargetOption = 2;
constexpr std::uint32_t kRouterFlag = 0x80000000U;
constexpr std::uint32_t kSolicitedFlag = 0x40000000U;
constexpr std::uint32_t kOverrideFlag = 0x20000000U;
constexpr std::size_t kWordBytes = 8;  // the unit of an option's length

// Reads the MAC of the option `wanted`. Returns false if an option has no length or runs beyond the end.
bool read_options(std::span<const std::uint8_t> options, std::uint8_t wanted, std::optional<MacAddress>& mac) noexcept {
    while (!options.empty()) {
        if (options.size() < 2) {
            return false;
        }
        const std::size_t bytes = options[1] * kWordBytes;
        if (bytes == 0 || bytes > options.size()) {
            return false;
        }
        if (options[0] == wanted && bytes == sizeof(RawLinkLayerOption)) {
            mac = MacAddress{read_raw<RawLinkLayerOption>(options.data()).mac};
        }
        options = options.subspan(bytes);
    }
    return true;
}

// Returns true if the addresses agree with the rest of the message.
bool is_consistent(const Ipv6Header& ip, const NeighbourMessage& message) noexcept {
    if (message.target.is_group() || message.target.is_v4() || ip.source.is_group()) {
        return false;
    }
    if (message.mac && !message.mac->is_station()) {
        return false;
    }
    if (message.advertisement) {
        return !ip.source.is_unspecified() && !(ip.destination.is_group() && message.solicited);
    }
    // A solicitation of duplicate address detection goes to the group and has no link-layer address to answer to.
    return !ip.source.is_unspecified() || (!message.mac && ip.destination == solicited_node_group(message.target));
}

}  // namespace

Parsed<NeighbourMessage> NeighbourMessage::parse(const Ipv6Header& ip, std::span<const std::uint8_t> message) noexcept {
    if (message.size() < sizeof(RawNeighbour)) {
        return Drop::Truncated;
    }
    const auto raw = read_raw<RawNeighbour>(message.data());
    if (raw.type != kIcmpV6Solicitation && raw.type != kIcmpV6Advertisement) {
        return Drop::Unsupported;
    }
    ChecksumSum sum;
    sum.add_pseudo_header(ip.source, ip.destination, kProtocolIcmpV6, static_cast<std::uint32_t>(message.size()));
    sum.add(message);
    if (!sum.is_right()) {
        return Drop::BadChecksum;
    }
    NeighbourMessage value;
    value.advertisement = raw.type == kIcmpV6Advertisement;
    const std::uint32_t flags = value.advertisement ? raw.flags.get() : 0;
    value.router = (flags & kRouterFlag) != 0;
    value.solicited = (flags & kSolicitedFlag) != 0;
    value.replaces = (flags & kOverrideFlag) != 0;
    value.checksum = raw.checksum.get();
    value.target = IpAddress::from_v6(raw.target);
    const std::uint8_t wanted = value.advertisement ? kTargetOption : kSourceOption;
    if (ip.hop_limit != kNeighbourHopLimit || raw.code != 0 ||
        !read_options(message.subspan(sizeof(RawNeighbour)), wanted, value.mac) || !is_consistent(ip, value)) {
        return Drop::BadNeighbour;
    }
    return value;
}

void NeighbourMessage::emit(Raw& raw) const noexcept {
    CAIRN_ASSERT(mac.has_value());
    const std::uint32_t flags =
        (router ? kRouterFlag : 0U) | (solicited ? kSolicitedFlag : 0U) | (replaces ? kOverrideFlag : 0U);
    raw.message.type = advertisement ? kIcmpV6Advertisement : kIcmpV6Solicitation;
    raw.message.code = 0;
    raw.message.checksum.set(checksum);
    raw.message.flags.set(advertisement ? flags : 0U);
    raw.message.target = target.octets();
    raw.option = {advertisement ? kTargetOption : kSourceOption, 1, mac->octets};
}

IpAddress solicited_node_group(const IpAddress& address) noexcept {
    std::array<std::uint8_t, 16> octets{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0xff};
    std::copy_n(address.octets().begin() + 13, 3, octets.begin() + 13);
    return IpAddress::from_v6(octets);
}

IpAddress all_nodes_group() noexcept {
    std::array<std::uint8_t, 16> octets{0xff, 0x02};
    octets[15] = 1;
    return IpAddress::from_v6(octets);
}

MacAddress group_mac(const IpAddress& v6_group) noexcept {
    const auto& octets = v6_group.octets();
    return {{0x33, 0x33, octets[12], octets[13], octets[14], octets[15]}};
}

}  // namespace cairn::net
