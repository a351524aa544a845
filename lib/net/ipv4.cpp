#include "lib/net/ipv4.hpp"

#include <bit>

#include "lib/net/checksum.hpp"

namespace cairn::net {

namespace {

constexpr std::uint8_t kVersionAndWords = 0x45;

ChecksumSum sum_of(const RawIpv4& raw) noexcept {
    ChecksumSum sum;
    sum.add(std::bit_cast<std::array<std::uint8_t, sizeof(RawIpv4)>>(raw));
    return sum;
}

}  // namespace

Parsed<Ipv4Header> Ipv4Header::parse(std::span<const std::uint8_t> packet) noexcept {
    if (packet.size() < kBytes) {
        return Drop::Truncated;
    }
    const auto raw = read_raw<Raw>(packet.data());
    if ((raw.version_and_words >> 4U) != 4) {
        return Drop::BadVersion;
    }
    if (raw.version_and_words != kVersionAndWords) {
        return raw.version_and_words > kVersionAndWords ? Drop::Options : Drop::BadLength;
    }
    if (!sum_of(raw).is_right()) {
        return Drop::BadChecksum;
    }
    Ipv4Header header;
    header.traffic_class = raw.traffic_class;
    header.total_bytes = raw.total_bytes.get();
    header.id = raw.id.get();
    header.flags_and_offset = raw.flags_and_offset.get();
    header.ttl = raw.ttl;
    header.protocol = raw.protocol;
    header.source = IpAddress::from_v4(raw.source.get());
    header.destination = IpAddress::from_v4(raw.destination.get());
    if (header.total_bytes < kBytes || header.total_bytes > packet.size()) {
        return Drop::BadLength;
    }
    return header;
}

void Ipv4Header::emit(Raw& raw) const noexcept {
    CAIRN_ASSERT(source.is_v4() && destination.is_v4());
    raw = {kVersionAndWords, traffic_class,     Be16{total_bytes},     Be16{id}, Be16{flags_and_offset}, ttl, protocol,
           Be16{},           Be32{source.v4()}, Be32{destination.v4()}};
    raw.checksum.set(sum_of(raw).checksum());
}

}  // namespace cairn::net
