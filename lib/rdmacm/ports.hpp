// The ports that are taken, of each port space.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "lib/net/address.hpp"

namespace cairn::rdmacm {

// A claim to a port.
struct PortClaim {
    int space = 0;  // rdma_port_space
    net::IpAddress address{};
    std::uint16_t port = 0;  // 0: any that is free
    bool shares = false;     // may share the port with others that share, too (RDMA_OPTION_ID_REUSEADDR)
    bool serves = false;     // the broker of the address has given it to the program
    // An unspecified address covers its own family only. Another id with this option may bind the port in the other
    // family (RDMA_OPTION_ID_AFONLY).
    bool own_family = false;
};

// The ports of a process. Pure: no I/O, and `chance` comes from the caller.
class PortTable {
public:
    static constexpr std::uint16_t kFirst = 32768;  // ports that the table chooses are of [kFirst, kLast]
    static constexpr std::uint16_t kLast = 60999;

    // Takes a port and returns it; 0 if it is taken already, or all are. A port is taken at one address or, if the
    // address is unspecified, at all of them. `chance` chooses among free ports.
    [[nodiscard]] std::uint16_t claim(const PortClaim& wanted, std::uint32_t chance);
    // Makes the holder of the port share it, or not share it, from now on. Returns false, and changes nothing, if the
    // port is not to be shared and others have it, too.
    [[nodiscard]] bool change(const PortClaim& to) noexcept;
    // Gives back a port with the claim that took it. A child of fork() has no ports of its parent. Returns true if the
    // broker of the address is to get it back. That is so if the port was held and serves, and no other claim at this
    // address serves.
    bool release(const PortClaim& held) noexcept;

private:
    using Holder = PortClaim;
    [[nodiscard]] static bool meet(const Holder& holder, const PortClaim& wanted) noexcept;
    [[nodiscard]] bool is_free(const PortClaim& wanted) const noexcept;

    std::map<std::pair<int, std::uint16_t>, std::vector<Holder>> holders_;
};

}  // namespace cairn::rdmacm
