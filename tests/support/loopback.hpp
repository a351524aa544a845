// Addresses of the loopback and a UDP port that two test programs running at once do not share.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "lib/net/address.hpp"

namespace cairn::test {

// Returns the address of a host, 1 to 14, of the sixteen addresses from 127.192.0.0 on that go with the process ID.
inline std::string loopback(std::uint32_t host) {
    const auto process = static_cast<std::uint32_t>(getpid()) % (1U << 18U);
    return net::IpAddress::from_v4(0x7fc0'0000 + process * 16 + host).text();
}

// Returns a UDP port below the range that the kernel assigns from. For ::1, which has no neighbours.
inline std::uint16_t own_udp_port() {
    return static_cast<std::uint16_t>(1024 + getpid() % 30'000);
}

// Returns whether there is ::1; containers often lack it.
inline bool has_loopback_v6() {
    const int any = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    const bool there = any >= 0 && bind(any, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    if (any >= 0) {
        close(any);
    }
    return there;
}

}  // namespace cairn::test
