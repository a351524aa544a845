#include "lib/broker/wills.hpp"

namespace cairn::broker {

bool Wills::leave(Slot program, const Will& will) {
    auto& of_it = left_[program];
    if (of_it.size() >= kMostOfOne && of_it.find(will.name) == of_it.end()) {
        return false;
    }
    of_it[will.name] = will;
    return true;
}

void Wills::revoke(Slot program, std::uint32_t name) {
    if (const auto found = left_.find(program); found != left_.end()) {
        found->second.erase(name);
    }
}

void Wills::open(Slot program, Instant now) {
    const auto found = left_.find(program);
    if (found == left_.end()) {
        return;
    }
    for (const auto& [name, will] : found->second) {
        forget(name);
        under_way_[name] = {will, 0, now};
        due_.emplace(now, name);
    }
    left_.erase(found);
}

const Will* Wills::poll(Instant now) {
    while (!due_.empty() && due_.begin()->first <= now) {
        const std::uint32_t name = due_.begin()->second;
        UnderWay& next = under_way_.at(name);
        if (next.tries == kTries) {
            forget(name);  // it has no peer any more
            continue;
        }
        due_.erase(due_.begin());
        next.due = now + kBetween * (std::int64_t{1} << static_cast<unsigned>(next.tries));
        ++next.tries;
        due_.emplace(next.due, name);
        return &next.will;
    }
    return nullptr;
}

void Wills::on_answer(std::uint32_t name, const net::IpAddress& from) {
    if (const auto found = under_way_.find(name); found != under_way_.end() && found->second.will.remote == from) {
        forget(name);
    }
}

void Wills::forget(std::uint32_t name) {
    if (const auto found = under_way_.find(name); found != under_way_.end()) {
        due_.erase({found->second.due, name});
        under_way_.erase(found);
    }
}

}  // namespace cairn::broker
