#include "lib/rdmacm/ports.hpp"

#include <algorithm>

namespace cairn::rdmacm {

// mutants: rdmacm-ports-meet
bool PortTable::meet(const Holder& holder, const PortClaim& wanted) noexcept {
    return holder.address == wanted.address || holder.address.is_unspecified() || wanted.address.is_unspecified();
}

// mutants: rdmacm-ports-is-free
bool PortTable::is_free(const PortClaim& wanted) const noexcept {
    const auto held = holders_.find({wanted.space, wanted.port});
    if (held == holders_.end()) {
        return true;
    }
    return std::none_of(held->second.begin(), held->second.end(), [&wanted](const Holder& each) {
        return meet(each, wanted) && !(each.shares && wanted.shares);
    });
}

// mutants: rdmacm-ports-claim
std::uint16_t PortTable::claim(const PortClaim& wanted, std::uint32_t chance) {
    constexpr std::uint32_t kPorts = kLast - kFirst + 1;
    PortClaim tried = wanted;
    const std::uint32_t tries = wanted.port == 0 ? kPorts : 1;
    for (std::uint32_t i = 0; i < tries; ++i) {
        if (wanted.port == 0) {
            tried.port = static_cast<std::uint16_t>(kFirst + (chance + i) % kPorts);
        }
        if (is_free(tried)) {
            holders_[{tried.space, tried.port}].push_back({tried.address, tried.shares});
            return tried.port;
        }
    }
    return 0;
}

// mutants: rdmacm-ports-change
bool PortTable::change(const PortClaim& to) noexcept {
    const auto held = holders_.find({to.space, to.port});
    if (held == holders_.end()) {
        return false;
    }
    std::vector<Holder>& holders = held->second;
    const auto meeting =
        std::count_if(holders.begin(), holders.end(), [&to](const Holder& each) { return meet(each, to); });
    const auto found =
        std::find_if(holders.begin(), holders.end(), [&to](const Holder& each) { return each.address == to.address; });
    if (found == holders.end() || (!to.shares && meeting > 1)) {
        return false;
    }
    found->shares = to.shares;
    return true;
}

bool PortTable::release(int space, std::uint16_t port, const net::IpAddress& address) noexcept {
    const auto held = holders_.find({space, port});
    if (held == holders_.end()) {
        return false;
    }
    std::vector<Holder>& holders = held->second;
    const auto found = std::find_if(holders.begin(), holders.end(),
                                    [&address](const Holder& each) { return each.address == address; });
    if (found == holders.end()) {
        return false;
    }
    holders.erase(found);
    if (!holders.empty()) {
        return false;
    }
    holders_.erase(held);
    return true;
}

}  // namespace cairn::rdmacm
