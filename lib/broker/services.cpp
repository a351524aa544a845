#include "lib/broker/services.hpp"

#include <algorithm>

#include "lib/wire/ip_cm.hpp"

namespace cairn::broker {

namespace {

std::uint16_t port_of(wire::ServiceId service) noexcept {
    return static_cast<std::uint16_t>(service.value);
}

}  // namespace

bool Services::claim(Slot program, const Claim& wanted) {
    const auto count = counts_.find(program);
    const bool has_most = count != counts_.end() && count->second >= kMostOfOne;
    if (has_most || !may_have(program, wanted.service, wanted.shares)) {
        return false;
    }
    std::vector<Holder>& holders = holders_[wanted.service];
    const auto held =
        std::find_if(holders.begin(), holders.end(), [program](const Holder& each) { return each.program == program; });
    if (held != holders.end()) {
        held->shares = wanted.shares;
    } else {
        holders.push_back({program, wanted.shares});
        ++counts_[program];
    }
    if (const auto left = who_left(wanted.service); left != left_by_.end() && left->second != program) {
        left_by_.erase(left);
    }
    return true;
}

bool Services::may_have(Slot program, wire::ServiceId service, bool shares) const {
    const auto found = holders_.find(service);
    return found == holders_.end() ||
           std::all_of(found->second.begin(), found->second.end(), [program, shares](const Holder& each) {
               return each.program == program || (each.shares && shares);
           });
}

void Services::release(Slot program, wire::ServiceId service) {
    const auto found = holders_.find(service);
    if (found == holders_.end()) {
        return;
    }
    const std::size_t gone =
        std::erase_if(found->second, [program](const Holder& each) { return each.program == program; });
    counts_[program] -= gone;
    if (gone != 0 && wire::is_ip_service(service)) {
        left_by_[port_of(service)] = program;
    }
    if (found->second.empty()) {
        holders_.erase(found);
    }
}

void Services::forget(Slot program) {
    counts_.erase(program);
    std::erase_if(left_by_, [program](const auto& each) { return each.second == program; });
    for (auto each = holders_.begin(); each != holders_.end();) {
        std::erase_if(each->second, [program](const Holder& holder) { return holder.program == program; });
        each = each->second.empty() ? holders_.erase(each) : std::next(each);
    }
}

std::optional<bool> Services::shares(Slot program, wire::ServiceId service) const {
    if (const auto found = holders_.find(service); found != holders_.end()) {
        for (const Holder& each : found->second) {
            if (each.program == program) {
                return each.shares;
            }
        }
    }
    return std::nullopt;
}

std::optional<Slot> Services::holder(wire::ServiceId service) const {
    const auto found = holders_.find(service);
    return found == holders_.end() ? std::nullopt : std::optional(found->second.front().program);
}

std::optional<Slot> Services::receiver(wire::ServiceId service) const {
    const std::optional<Slot> has = holder(service);
    const auto left = who_left(service);
    return has || left == left_by_.end() ? has : left->second;
}

Services::Leavers::const_iterator Services::who_left(wire::ServiceId service) const {
    return wire::is_ip_service(service) ? left_by_.find(port_of(service)) : left_by_.end();
}

}  // namespace cairn::broker
