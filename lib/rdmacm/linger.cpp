#include "lib/rdmacm/linger.hpp"

#include <algorithm>

namespace cairn::rdmacm {

std::vector<Linger::Ended>::iterator Linger::find(const Service& service) noexcept {
    return std::find_if(ended_.begin(), ended_.end(), [&](const Ended& each) { return each.service == service; });
}

void Linger::begin(const Service& service, Instant now) {
    ended_.push_back({service, now + kFor});
}

bool Linger::has(const Service& service) const noexcept {
    return std::any_of(ended_.begin(), ended_.end(), [&](const Ended& each) { return each.service == service; });
}

bool Linger::hold(const Service& service, const cm::Event& request, Instant now) {
    const auto found = find(service);
    if (found == ended_.end() || found->held.size() >= kMostHeld) {
        return false;
    }
    found->held.push_back({std::min(now + kHolds, found->until), request});
    return true;
}

bool Linger::end(const Service& service, std::vector<cm::Event>& held) {
    const auto found = find(service);
    if (found == ended_.end()) {
        return false;
    }
    for (const Held& each : found->held) {
        held.push_back(each.request);
    }
    ended_.erase(found);
    return true;
}

Linger::Over Linger::take_due(Instant now) {
    Over over;
    for (Ended& each : ended_) {
        while (!each.held.empty() && now >= each.held.front().until) {
            over.requests.push_back(each.held.front().request);
            each.held.pop_front();
        }
        if (now >= each.until) {
            over.services.push_back(each.service);
        }
    }
    std::erase_if(ended_, [now](const Ended& each) { return now >= each.until; });
    return over;
}

Instant Linger::next_deadline() const noexcept {
    Instant first = Instant::never();
    for (const Ended& each : ended_) {
        first = std::min(first, each.held.empty() ? each.until : each.held.front().until);
    }
    return first;
}

}  // namespace cairn::rdmacm
