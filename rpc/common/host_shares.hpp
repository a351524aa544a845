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
    // True if the host may have another session beside those that it holds and `asked` more, when so many places are
    // free: it has less than three times as many. So a quarter of the places stays for others however many sessions a
    // host opens. A second such host leaves a quarter of these.
    // mutants: rpc-host-shares-may-add
    [[nodiscard]] bool may_add(const net::IpAddress& host, std::size_t free, std::size_t asked = 0) const {
        return held_by(host) + asked < kShare * free;
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
