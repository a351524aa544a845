#include "fs/daemon/crowd.hpp"

#include <algorithm>

#include "lib/base/assert.hpp"

namespace cairn::fs {

Crowd::Verdict Crowd::judge(std::uint32_t user) const noexcept {
    if (count_ >= most_) {
        return Verdict::Full;
    }
    const bool is_bounded = user != 0 && user != own_user_;
    return is_bounded && count_of(user) >= most_of_user_ ? Verdict::HasShare : Verdict::Welcome;
}

void Crowd::add(std::uint32_t user) {
    ++users_[user];
    ++count_;
}

void Crowd::remove(std::uint32_t user) noexcept {
    const auto found = users_.find(user);
    CAIRN_ASSERT(found != users_.end());
    --count_;
    if (--found->second == 0) {
        users_.erase(found);
    }
}

std::size_t Crowd::count_of(std::uint32_t user) const noexcept {
    const auto found = users_.find(user);
    return found == users_.end() ? 0 : found->second;
}

std::size_t place_to_give_up(std::span<const std::uint32_t> users) {
    CAIRN_ASSERT(!users.empty());
    const auto worst = std::ranges::max_element(
        users, {}, [users](std::uint32_t user) { return std::ranges::count(users, user); });  // the first is the oldest
    return static_cast<std::size_t>(worst - users.begin());
}

}  // namespace cairn::fs
