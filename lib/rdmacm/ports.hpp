// Which ports are taken, of each port space.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "lib/net/address.hpp"

namespace cairn::rdmacm {

// What a port is asked for.
struct PortClaim {
    int space = 0;  // rdma_port_space
    net::IpAddress address{};
    std::uint16_t port = 0;  // 0: any that is free
    bool shares = false;     // with others that share, too (RDMA_OPTION_ID_REUSEADDR)
    bool serves = false;     // the broker of the address has given it to the program
    // Any address means those of its own family, and leaves the other one's to who does so, too
    // (RDMA_OPTION_ID_AFONLY).
    bool own_family = false;
};

// Pure: no I/O, no chance of its own.
class PortTable {
public:
    static constexpr std::uint16_t kFirst = 32768;  // those that are given are of [kFirst, kLast]
    static constexpr std::uint16_t kLast = 60999;

    // Returns the port, which is taken from now on; 0: it is taken already, or all are. A port is taken at one address
    // or, if the address is unspecified, at all of them. `chance` chooses among free ports.
    [[nodiscard]] std::uint16_t claim(const PortClaim& wanted, std::uint32_t chance);
    // Who holds a port so shares it from now on, or does not. Returns false, and changes nothing, if others have it,
    // too, and it is not to be shared.
    [[nodiscard]] bool change(const PortClaim& to) noexcept;
    // Gives back a port that was claimed so. A child of fork() has none of its parent's. Returns true if the broker of
    // the address is to have it back: it was held and serves, and nobody else does at this address.
    bool release(const PortClaim& held) noexcept;

private:
    using Holder = PortClaim;
    [[nodiscard]] static bool meet(const Holder& holder, const PortClaim& wanted) noexcept;
    [[nodiscard]] bool is_free(const PortClaim& wanted) const noexcept;

    std::map<std::pair<int, std::uint16_t>, std::vector<Holder>> holders_;
};

}  // namespace cairn::rdmacm
