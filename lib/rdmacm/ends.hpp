// The ends of a connection as programs give them: socket addresses.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <span>

#include "lib/net/address.hpp"

namespace cairn::rdmacm {

// An address and a port. The family is kept in addition: an IPv6 socket address may hold an IPv4 address.
struct End {
    net::IpAddress address = net::IpAddress::from_v4(0);
    std::uint16_t port = 0;
    bool is_v6 = false;       // of the socket address
    std::uint32_t scope = 0;  // of a link-local address

    friend bool operator==(const End&, const End&) noexcept = default;
};

// Returns the end; nullopt if the family is neither IPv4 nor IPv6.
[[nodiscard]] std::optional<End> end_of(const sockaddr* address) noexcept;
// Returns the length of a socket address of the family; 0 for another family.
[[nodiscard]] socklen_t length_of(const sockaddr* address) noexcept;
// Writes the socket address. Returns its length.
socklen_t write_end(const End& end, sockaddr_storage& out) noexcept;

// Returns the local address of the route to `to`. Writes an errno value to `reason` if there is no route.
[[nodiscard]] std::optional<net::IpAddress> source_of_route(const End& to, int& reason) noexcept;
// Returns 0 if the address is one of this machine's, else an errno value: EADDRNOTAVAIL, or the reason why that could
// not be determined.
[[nodiscard]] int check_local(const End& end) noexcept;

// Returns which of the devices' addresses reaches `to`. It is the route's own source, else `to` itself, else the first
// of its family that is loopback if `to` is. Returns nullopt if there is none.
[[nodiscard]] std::optional<std::size_t> choose_source(std::span<const net::IpAddress> devices,
                                                       const net::IpAddress& source, const net::IpAddress& to) noexcept;

}  // namespace cairn::rdmacm
