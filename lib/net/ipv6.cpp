#include "lib/net/ipv6.hpp"

namespace cairn::net {

Parsed<Ipv6Header> Ipv6Header::parse(std::span<const std::uint8_t> packet) noexcept {
    if (packet.size() < kBytes) {
        return Drop::Truncated;
    }
    const auto raw = read_raw<Raw>(packet.data());
    const std::uint32_t first = raw.version_class_flow.get();
    if ((first >> 28U) != 6) {
        return Drop::BadVersion;
    }
    Ipv6Header header;
    header.traffic_class = static_cast<std::uint8_t>(first >> 20U);
    header.flow_label = first & 0xfffffU;
    header.payload_bytes = raw.payload_bytes.get();
    header.next_header = raw.next_header;
    header.hop_limit = raw.hop_limit;
    header.source = IpAddress::from_v6(raw.source);
    header.destination = IpAddress::from_v6(raw.destination);
    if (kBytes + header.payload_bytes > packet.size()) {
        return Drop::BadLength;
    }
    if (header.source.is_v4() || header.destination.is_v4()) {
        return Drop::BadAddress;
    }
    return header;
}

void Ipv6Header::emit(Raw& raw) const noexcept {
    CAIRN_ASSERT(!source.is_v4() && !destination.is_v4());
    raw.version_class_flow.set((6U << 28U) | (std::uint32_t{traffic_class} << 20U) | (flow_label & 0xfffffU));
    raw.payload_bytes.set(payload_bytes);
    raw.next_header = next_header;
    raw.hop_limit = hop_limit;
    raw.source = source.octets();
    raw.destination = destination.octets();
}

}  // namespace cairn::net
