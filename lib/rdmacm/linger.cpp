#include "lib/rdmacm/linger.hpp"

#include <algorithm>

namespace cairn::rdmacm {

void Linger::begin(const Service& service, Instant now) {
    ended_.push_back({service, now + kFor});
}

// mutants: rdmacm-linger-hold
bool Linger::hold(const Service& service, const cm::Event& request) {
    const auto found =
        std::find_if(ended_.begin(), ended_.end(), [&](const Ended& each) { return each.service == service; });
    if (found == ended_.end() || found->held.size() >= kMostHeld) {
        return false;
    }
    found->held.push_back(request);
    return true;
}

bool Linger::end(const Service& service, std::vector<cm::Event>& held) {
    const auto found =
        std::find_if(ended_.begin(), ended_.end(), [&](const Ended& each) { return each.service == service; });
    if (found == ended_.end()) {
        return false;
    }
    held = std::move(found->held);
    ended_.erase(found);
    return true;
}

// mutants: rdmacm-linger-find-due
const Service* Linger::find_due(Instant now) const noexcept {
    return !ended_.empty() && now >= ended_.front().until ? &ended_.front().service : nullptr;
}

Instant Linger::next_deadline() const noexcept {
    return ended_.empty() ? Instant::never() : ended_.front().until;
}

}  // namespace cairn::rdmacm
