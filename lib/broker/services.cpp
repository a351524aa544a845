#include "lib/broker/services.hpp"

#include <algorithm>

namespace cairn::broker {

namespace {

constexpr std::uint64_t kPortBits = 0xffff;

}  // namespace

// mutants: broker-services-claim
std::optional<wire::ServiceId> Services::claim(Slot program, const Claim& wanted) {
    const auto count = counts_.find(program);
    if (count != counts_.end() && count->second >= kMostOfOne) {
        return std::nullopt;
    }
    const std::optional<wire::ServiceId> service = wanted.any ? find_port(wanted.service) : wanted.service;
    if (!service || !may_have(program, *service, wanted.shares)) {
        return std::nullopt;
    }
    std::vector<Holder>& holders = holders_[*service];
    const auto held =
        std::find_if(holders.begin(), holders.end(), [program](const Holder& each) { return each.program == program; });
    if (held != holders.end()) {
        held->shares = wanted.shares;
    } else {
        holders.push_back({program, wanted.shares});
        ++counts_[program];
    }
    return service;
}

// mutants: broker-services-may-have
bool Services::may_have(Slot program, wire::ServiceId service, bool shares) const {
    const auto found = holders_.find(service);
    return found == holders_.end() ||
           std::all_of(found->second.begin(), found->second.end(), [program, shares](const Holder& each) {
               return each.program == program || (each.shares && shares);
           });
}

// One that nobody has.
// mutants: broker-services-find-port
std::optional<wire::ServiceId> Services::find_port(wire::ServiceId from) const {
    constexpr std::uint64_t kPorts = kLastPort - kFirstPort + 1U;
    const std::uint64_t space = from.value & ~kPortBits;
    for (std::uint64_t tried = 0; tried < kPorts; ++tried) {
        const wire::ServiceId service{space | (kFirstPort + ((from.value & kPortBits) + tried) % kPorts)};
        if (holders_.find(service) == holders_.end()) {
            return service;
        }
    }
    return std::nullopt;
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
