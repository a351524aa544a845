// Messages as they come from a route socket.
#pragma once

#include <arpa/inet.h>
#include <linux/rtnetlink.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "lib/net/address.hpp"

namespace cairn::ibverbs {

inline void append(std::vector<std::uint8_t>& to, const std::vector<std::uint8_t>& from) {
    to.insert(to.end(), from.begin(), from.end());
}
template <class Value>
std::vector<std::uint8_t> bytes_of(const Value& value) {
    std::vector<std::uint8_t> bytes(sizeof(value));
    std::memcpy(bytes.data(), &value, sizeof(value));
    return bytes;
}
inline std::vector<std::uint8_t> message_of(std::uint16_t type, const std::vector<std::uint8_t>& body) {
    nlmsghdr header{};
    header.nlmsg_len = static_cast<std::uint32_t>(sizeof(header) + body.size());
    header.nlmsg_type = type;
    std::vector<std::uint8_t> bytes = bytes_of(header);
    append(bytes, body);
    return bytes;
}
inline std::vector<std::uint8_t> link_message(std::uint16_t type, int interface, unsigned flags) {
    ifinfomsg link{};
    link.ifi_index = interface;
    link.ifi_flags = flags;
    return message_of(type, bytes_of(link));
}
inline std::vector<std::uint8_t> attribute_of(std::uint16_t type, const net::IpAddress& address) {
    std::vector<std::uint8_t> value(address.octets().begin(), address.octets().end());
    if (address.is_v4()) {
        value.erase(value.begin(), value.begin() + 12);
    }
    rtattr header{};
    header.rta_len = static_cast<std::uint16_t>(sizeof(header) + value.size());
    header.rta_type = type;
    std::vector<std::uint8_t> bytes = bytes_of(header);
    append(bytes, value);
    return bytes;
}
// Makes a message of an address. `peer` is that of a point-to-point interface.
inline std::vector<std::uint8_t> address_message(std::uint16_t type, unsigned interface, const net::IpAddress& address,
                                                 std::optional<net::IpAddress> peer = std::nullopt) {
    ifaddrmsg header{};
    header.ifa_family = address.is_v4() ? AF_INET : AF_INET6;
    header.ifa_index = interface;
    std::vector<std::uint8_t> body = bytes_of(header);
    if (peer) {
        append(body, attribute_of(IFA_LOCAL, address));
    }
    append(body, attribute_of(IFA_ADDRESS, peer.value_or(address)));
    return message_of(type, body);
}

}  // namespace cairn::ibverbs
