#include "lib/net/arp.hpp"

#include "lib/net/ethernet.hpp"

namespace cairn::net {

namespace {

constexpr std::uint16_t kHardwareEthernet = 1;
constexpr std::uint8_t kMacBytes = 6;
constexpr std::uint8_t kIpv4Bytes = 4;

}  // namespace

Parsed<ArpMessage> ArpMessage::parse(std::span<const std::uint8_t> message) noexcept {
    if (message.size() < kBytes) {
        return Drop::Truncated;
    }
    const auto raw = read_raw<Raw>(message.data());
    if (raw.hardware_type.get() != kHardwareEthernet || raw.protocol_type.get() != kEtherTypeIpv4) {
        return Drop::Unsupported;
    }
    const std::uint16_t operation = raw.operation.get();
    if (raw.hardware_bytes != kMacBytes || raw.protocol_bytes != kIpv4Bytes || operation < 1 || operation > 2) {
        return Drop::BadNeighbour;
    }
    ArpMessage arp;
    arp.operation = static_cast<ArpOperation>(operation);
    arp.sender_mac = {raw.sender_mac};
    arp.sender_ip = IpAddress::from_v4(raw.sender_ip.get());
    arp.target_mac = {raw.target_mac};
    arp.target_ip = IpAddress::from_v4(raw.target_ip.get());
    if (!arp.sender_mac.is_station()) {
        return Drop::BadAddress;
    }
    return arp;
}

void ArpMessage::emit(Raw& raw) const noexcept {
    CAIRN_ASSERT(sender_ip.is_v4() && target_ip.is_v4());
    raw = {Be16{kHardwareEthernet},
           Be16{kEtherTypeIpv4},
           kMacBytes,
           kIpv4Bytes,
           Be16{static_cast<std::uint16_t>(operation)},
           sender_mac.octets,
           Be32{sender_ip.v4()},
           target_mac.octets,
           Be32{target_ip.v4()}};
}

}  // namespace cairn::net
