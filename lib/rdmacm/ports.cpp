#include "lib/rdmacm/ports.hpp"

#include <algorithm>

namespace cairn::rdmacm {

bool PortTable::meet(const Holder& holder, const PortClaim& wanted) noexcept {
    if (holder.own_family && wanted.own_family && holder.address.is_v4() != wanted.address.is_v4()) {
        return false;
    }
    return holder.address == wanted.address || holder.address.is_unspecified() || wanted.address.is_unspecified();
}

bool PortTable::is_free(const PortClaim& wanted) const noexcept {
    const auto held = holders_.find({wanted.space, wanted.port});
    if (held == holders_.end()) {
        return true;
    }
    return std::none_of(held->second.begin(), held->second.end(), [&wanted](const Holder& each) {
        return meet(each, wanted) && !(each.shares && wanted.shares);
    });
}

std::uint16_t PortTable::claim(const PortClaim& wanted, std::uint32_t chance) {
    constexpr std::uint32_t kPorts = kLast - kFirst + 1;
    PortClaim tried = wanted;
    const std::uint32_t tries = wanted.port == 0 ? kPorts : 1;
    for (std::uint32_t i = 0; i < tries; ++i) {
        if (wanted.port == 0) {
            tried.port = static_cast<std::uint16_t>(kFirst + (chance + i) % kPorts);
        }
        if (is_free(tried)) {
            holders_[{tried.space, tried.port}].push_back(tried);
            return tried.port;
        }
    }
    return 0;
}

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

bool PortTable::release(const PortClaim& held) noexcept {
    const auto all = holders_.find({held.space, held.port});
    if (all == holders_.end()) {
        return false;
    }
    std::vector<Holder>& holders = all->second;
    const auto is_alike = [&held](const Holder& each) {
        return each.address == held.address && each.serves == held.serves;
    };
    const auto found = std::find_if(holders.begin(), holders.end(), is_alike);
    if (found == holders.end()) {
        return false;
    }
    holders.erase(found);
    const bool was_last = held.serves && std::none_of(holders.begin(), holders.end(), is_alike);
    if (holders.empty()) {
        holders_.erase(all);
    }
    return was_last;
}

}  // namespace cairn::rdmacm
