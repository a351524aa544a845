// Counts the sessions that each host has opened to an endpoint.
#pragma once

#include <cstddef>
#include <map>

#include "lib/base/assert.hpp"
#include "lib/net/address.hpp"

namespace cairn::rpc {

// For the control path: allocates. Each call takes time in the logarithm of the number of hosts.
class HostShares {
public:
    // Returns true if the host may have another session while `free` places are free. It holds sessions, and has
    // `asked` for more. Together these must be fewer than three times the free places. So a quarter of the places stays
    // for others, however many sessions a host opens. A second such host leaves a quarter of that quarter.
    [[nodiscard]] bool may_add(const net::IpAddress& host, std::size_t free, std::size_t asked = 0) const {
        return held_by(host) + asked < kShare * free;
    }
    [[nodiscard]] std::size_t held_by(const net::IpAddress& host) const {
        const auto found = held_.find(host.share_holder());
        return found == held_.end() ? 0 : found->second;
    }
    void add(const net::IpAddress& host) { ++held_[host.share_holder()]; }
    // Removes a session of the host, which has one (asserted).
    void remove(const net::IpAddress& host) {
        const auto found = held_.find(host.share_holder());
        CAIRN_ASSERT(found != held_.end());
        if (--found->second == 0) {
            held_.erase(found);
        }
    }

private:
    static constexpr std::size_t kShare = 3;

    std::map<net::IpAddress, std::size_t> held_;  // an entry is never 0
};

}  // namespace cairn::rpc
