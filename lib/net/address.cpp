#include "lib/net/address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>

namespace cairn::net {

namespace {

// Parses two hexadecimal digits. Returns false if they are none.
bool parse_octet(std::string_view digits, std::uint8_t& octet) noexcept {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), octet, 16);
    return error == std::errc() && end == digits.data() + digits.size();
}

}  // namespace

Result<MacAddress> MacAddress::parse(std::string_view text) {
    constexpr std::size_t kTextBytes = 17;
    MacAddress address;
    bool good = text.size() == kTextBytes;
    for (std::size_t i = 0; good && i < address.octets.size(); ++i) {
        good = parse_octet(text.substr(3 * i, 2), address.octets[i]) && (i == 5 || text[3 * i + 2] == ':');
    }
    if (!good) {
        return Error{fmt::format("'{}' is not a MAC address", text), "write it as 02:00:5e:10:00:01"};
    }
    return address;
}

std::string MacAddress::text() const {
    return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", octets[0], octets[1], octets[2], octets[3],
                       octets[4], octets[5]);
}

Result<IpAddress> IpAddress::parse(std::string_view text) {
    const std::string terminated(text);
    const bool whole = terminated.find('\0') == std::string::npos;
    in_addr v4{};
    if (whole && inet_pton(AF_INET, terminated.c_str(), &v4) == 1) {
        return IpAddress::from_v4(ntohl(v4.s_addr));
    }
    std::array<std::uint8_t, 16> v6{};
    if (whole && inet_pton(AF_INET6, terminated.c_str(), v6.data()) == 1) {
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

bool IpAddress::shares_prefix(const IpAddress& other, std::uint8_t prefix_bits) const noexcept {
    if (is_v4() != other.is_v4()) {
        return false;
    }
    const std::size_t bits = is_v4() ? 96U + prefix_bits : prefix_bits;  // counted in the sixteen octets
    for (std::size_t i = 0; i < octets_.size() && 8 * i < bits; ++i) {
        const std::size_t left = bits - 8 * i;
        const auto mask = static_cast<std::uint8_t>(left >= 8 ? 0xffU : 0xffU << (8 - left));
        if (((octets_[i] ^ other.octets_[i]) & mask) != 0) {
            return false;
        }
    }
    return true;
}

}  // namespace cairn::net
