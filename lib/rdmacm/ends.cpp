#include "lib/rdmacm/ends.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lib/base/owned_fd.hpp"

namespace cairn::rdmacm {

namespace {

constexpr std::uint16_t kAnyPort = 4791;  // the port of a route that no packet takes

// Opens a socket that sends nothing.
[[nodiscard]] OwnedFd open_probe(bool is_v6) noexcept {
    return OwnedFd(socket(is_v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

[[nodiscard]] bool is_loopback(const net::IpAddress& address) noexcept {
    constexpr std::uint32_t kLoopbackNet = 127;
    std::array<std::uint8_t, 16> v6_loopback{};
    v6_loopback[15] = 1;
    return address.is_v4() ? address.v4() >> 24U == kLoopbackNet : address.octets() == v6_loopback;
}

}  // namespace

std::optional<End> end_of(const sockaddr* address) noexcept {
    End end;
    if (address == nullptr) {
        return std::nullopt;
    }
    if (address->sa_family == AF_INET) {
        sockaddr_in v4{};
        std::memcpy(&v4, address, sizeof(v4));
        end.address = net::IpAddress::from_v4(ntohl(v4.sin_addr.s_addr));
        end.port = ntohs(v4.sin_port);
        return end;
    }
    if (address->sa_family == AF_INET6) {
        sockaddr_in6 v6{};
        std::memcpy(&v6, address, sizeof(v6));
        std::array<std::uint8_t, 16> octets{};
        std::copy_n(v6.sin6_addr.s6_addr, octets.size(), octets.begin());
        end.address = net::IpAddress::from_v6(octets);
        end.port = ntohs(v6.sin6_port);
        end.is_v6 = true;
        end.scope = v6.sin6_scope_id;
        return end;
    }
    return std::nullopt;
}

socklen_t length_of(const sockaddr* address) noexcept {
    if (address == nullptr) {
        return 0;
    }
    return address->sa_family == AF_INET    ? socklen_t{sizeof(sockaddr_in)}
           : address->sa_family == AF_INET6 ? socklen_t{sizeof(sockaddr_in6)}
                                            : 0;
}

socklen_t write_end(const End& end, sockaddr_storage& out) noexcept {
    out = {};
    if (end.is_v6) {
        sockaddr_in6 v6{};
        v6.sin6_family = AF_INET6;
        v6.sin6_port = htons(end.port);
        v6.sin6_scope_id = end.scope;
        std::copy(end.address.octets().begin(), end.address.octets().end(), v6.sin6_addr.s6_addr);
        std::memcpy(&out, &v6, sizeof(v6));
        return sizeof(v6);
    }
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(end.port);
    v4.sin_addr.s_addr = htonl(end.address.v4());
    std::memcpy(&out, &v4, sizeof(v4));
    return sizeof(v4);
}

std::optional<net::IpAddress> source_of_route(const End& to, int& reason) noexcept {
    const OwnedFd probe = open_probe(to.is_v6);
    End asked = to;
    asked.port = kAnyPort;
    sockaddr_storage address{};
    socklen_t bytes = write_end(asked, address);
    if (!probe.is_open() || connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) {
        reason = errno;
        return std::nullopt;
    }
    bytes = sizeof(address);
    getsockname(probe.get(), reinterpret_cast<sockaddr*>(&address), &bytes);
    const std::optional<End> source = end_of(reinterpret_cast<const sockaddr*>(&address));
    return source ? std::optional(source->address) : std::nullopt;
}

int check_local(const End& end) noexcept {
    End any_port = end;
    any_port.port = 0;
    sockaddr_storage address{};
    const socklen_t bytes = write_end(any_port, address);
    const OwnedFd probe = open_probe(end.is_v6);
    if (!probe.is_open()) {
        return errno;
    }
    return ::bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), bytes) == 0 ? 0 : EADDRNOTAVAIL;
}

std::optional<std::size_t> choose_source(std::span<const net::IpAddress> devices, const net::IpAddress& source,
                                         const net::IpAddress& to) noexcept {
    const auto place_of = [devices](const auto& which) -> std::optional<std::size_t> {
        const auto found = std::find_if(devices.begin(), devices.end(), which);
        return found == devices.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - devices.begin()));
    };
    std::optional<std::size_t> place = place_of([&](const net::IpAddress& each) { return each == source; });
    if (!place) {
        place = place_of([&](const net::IpAddress& each) { return each == to; });
    }
    if (!place) {
        place = place_of([&](const net::IpAddress& each) {
            return each.is_v4() == to.is_v4() && is_loopback(each) == is_loopback(to);
        });
    }
    return place;
}

}  // namespace cairn::rdmacm
