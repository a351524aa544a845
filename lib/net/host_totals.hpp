// HostTotals: the amount of something that each host holds.
#pragma once

#include <cstdint>
#include <map>

#include "lib/base/assert.hpp"
#include "lib/net/address.hpp"

namespace cairn::net {

// Only hosts that hold something take memory. Each call takes time in the logarithm of their number.
class HostTotals {
public:
    [[nodiscard]] std::uint64_t of(const IpAddress& address) const {
        const auto found = held_.find(address.share_holder());
        return found == held_.end() ? 0 : found->second;
    }
    void add(const IpAddress& address, std::uint64_t amount) {
        if (amount > 0) {
            held_[address.share_holder()] += amount;
        }
    }
    // Takes the amount off. The host holds at least that much (asserted).
    void remove(const IpAddress& address, std::uint64_t amount) {
        if (amount == 0) {
            return;
        }
        const auto found = held_.find(address.share_holder());
        CAIRN_ASSERT(found != held_.end() && found->second >= amount);
        if ((found->second -= amount) == 0) {
            held_.erase(found);
        }
    }

private:
    std::map<IpAddress, std::uint64_t> held_;
};

}  // namespace cairn::net
