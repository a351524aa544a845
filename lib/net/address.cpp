#include "lib/net/address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <cstring>

namespace cairn::net {

Result<IpAddress> IpAddress::parse(std::string_view text) {
    const std::string terminated(text);
    in_addr v4{};
    if (inet_pton(AF_INET, terminated.c_str(), &v4) == 1) {
        return IpAddress::from_v4(ntohl(v4.s_addr));
    }
    std::array<std::uint8_t, 16> v6{};
    if (inet_pton(AF_INET6, terminated.c_str(), v6.data()) == 1) {
        return IpAddress::from_v6(v6);
    }
    return Error{fmt::format("'{}' is not an IP address", text), "write it as 192.0.2.1 or 2001:db8::1"};
}

std::string IpAddress::text() const {
    std::array<char, INET6_ADDRSTRLEN> buffer{};
    if (is_v4()) {
        inet_ntop(AF_INET, octets_.data() + 12, buffer.data(), buffer.size());
    } else {
        inet_ntop(AF_INET6, octets_.data(), buffer.data(), buffer.size());
    }
    return buffer.data();
}

}  // namespace cairn::net
