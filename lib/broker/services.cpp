#include "lib/broker/services.hpp"

#include <algorithm>

namespace cairn::broker {

// mutants: broker-services-claim
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
    return true;
}

// mutants: broker-services-may-have
bool Services::may_have(Slot program, wire::ServiceId service, bool shares) const {
    const auto found = holders_.find(service);
    return found == holders_.end() ||
           std::all_of(found->second.begin(), found->second.end(), [program, shares](const Holder& each) {
               return each.program == program || (each.shares && shares);
           });
}

// mutants: broker-services-release
void Services::release(Slot program, wire::ServiceId service) {
    const auto found = holders_.find(service);
    if (found == holders_.end()) {
        return;
    }
    counts_[program] -= std::erase_if(found->second, [program](const Holder& each) { return each.program == program; });
    if (found->second.empty()) {
        holders_.erase(found);
    }
}

// mutants: broker-services-forget
void Services::forget(Slot program) {
    counts_.erase(program);
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

}  // namespace cairn::broker
