// How many of an endpoint's sessions each host holds that opened them.
#pragma once

#include <cstddef>
#include <map>

#include "lib/base/assert.hpp"
#include "lib/net/address.hpp"

namespace cairn::rpc {

// For the control path: allocates. Each call takes time in the logarithm of the number of hosts.
class HostShares {
public:
    // True if the host may have another session: it holds less than three times as many as are free. So a quarter of
    // the places stays for others however many sessions a host opens. A second such host leaves a quarter of these.
    // mutants: rpc-host-shares-may-add
    [[nodiscard]] bool may_add(const net::IpAddress& host, std::size_t free) const {
        return held_by(host) < kShare * free;
    }
    // Returns the least number of places of which one host may hold so many.
    // mutants: rpc-host-shares-places-for
    [[nodiscard]] static constexpr std::size_t places_for(std::size_t sessions) noexcept {
        return sessions == 0 ? 0 : sessions + (sessions - 1) / kShare;
    }
    [[nodiscard]] std::size_t held_by(const net::IpAddress& host) const {
        const auto found = held_.find(host.share_holder());
        return found == held_.end() ? 0 : found->second;
    }
    void add(const net::IpAddress& host) { ++held_[host.share_holder()]; }
    // The host holds one (asserted).
    // mutants: rpc-host-shares-remove
    void remove(const net::IpAddress& host) {
        const auto found = held_.find(host.share_holder());
        CAIRN_ASSERT(found != held_.end());
        if (--found->second == 0) {
            held_.erase(found);
        }
    }

private:
    static constexpr std::size_t kShare = 3;

    std::map<net::IpAddress, std::size_t> held_;  // none holds 0
};

}  // namespace cairn::rpc
