#include "lib/port/path.hpp"

#include <cstring>

#include "lib/base/assert.hpp"
#include "lib/base/endian.hpp"
#include "lib/net/udp.hpp"

namespace cairn::port {

namespace {

constexpr std::uint8_t kTtl = 64;
constexpr std::uint8_t kUdp = 17;

Be16& field_at(std::uint8_t* at) noexcept {
    return *reinterpret_cast<Be16*>(at);
}

// Writes all fields but MAC addresses, traffic class, lengths and the IPv4 checksum.
void fill(std::uint8_t* header, const net::IpAddress& source, const net::IpAddress& destination,
          std::uint16_t udp_source_port) noexcept {
    const bool v4 = source.is_v4();
    std::uint8_t* ip = header + Path::kEthernetBytes;
    field_at(header + 12).set(v4 ? 0x0800 : 0x86dd);
    if (v4) {
        ip[0] = 0x45;
        field_at(ip + 6).set(0x4000);  // don't fragment; ID 0 counts in the ICRC
        ip[8] = kTtl;
        ip[9] = kUdp;
        std::memcpy(ip + 12, source.octets().data() + 12, 4);
        std::memcpy(ip + 16, destination.octets().data() + 12, 4);
    } else {
        ip[0] = 0x60;
        ip[6] = kUdp;
        ip[7] = kTtl;
        std::memcpy(ip + 8, source.octets().data(), 16);
        std::memcpy(ip + 24, destination.octets().data(), 16);
    }
    std::uint8_t* udp = ip + (v4 ? 20 : 40);
    field_at(udp).set(udp_source_port);
    field_at(udp + 2).set(net::kRoceUdpPort);
}

}  // namespace

Path::Path(const PathKey& key, std::uint16_t own_source_port) noexcept : key_(key), is_v4_(key.local.is_v4()) {
    lower_bytes_ = is_v4_ ? kLowerBytesV4 : kLowerBytesV6;
    CAIRN_ASSERT(key.local.is_v4() == key.remote.is_v4());
    fill(transmit_header_.data(), key.local, key.remote, own_source_port);
    fill(receive_header_.data(), key.remote, key.local, key.udp_source_port);
    set_traffic_class(key.traffic_class);
}

void Path::set_traffic_class(std::uint8_t traffic_class) noexcept {
    std::uint8_t* const ip = transmit_header_.data() + Path::kEthernetBytes;
    ip[0] = is_v4_ ? ip[0] : static_cast<std::uint8_t>(0x60U | (traffic_class >> 4U));
    ip[1] = is_v4_ ? traffic_class : static_cast<std::uint8_t>(traffic_class << 4U);
    key_.traffic_class = traffic_class;
    shapes_[static_cast<std::size_t>(Direction::Transmit)] = {};
}

bool Path::resolve(const net::MacAddress& local, const net::MacAddress& remote) noexcept {
    if (resolved_ && std::memcmp(transmit_header_.data(), remote.octets.data(), 6) == 0 &&
        std::memcmp(receive_header_.data(), local.octets.data(), 6) == 0) {
        return false;
    }
    std::memcpy(transmit_header_.data(), remote.octets.data(), 6);
    std::memcpy(transmit_header_.data() + 6, local.octets.data(), 6);
    std::memcpy(receive_header_.data(), local.octets.data(), 6);
    shapes_ = {};  // made for the addresses before
    resolved_ = true;
    return true;
}

std::optional<net::MacAddress> Path::goes_to() const noexcept {
    std::optional<net::MacAddress> mac;
    if (resolved_) {
        std::memcpy(mac.emplace().octets.data(), transmit_header_.data(), 6);
    }
    return mac;
}

void Path::unpin() noexcept {
    CAIRN_ASSERT(pins_ > 0);
    if (--pins_ == 0 && idle_ != nullptr) {
        *idle_ = 1;
    }
}

}  // namespace cairn::port
