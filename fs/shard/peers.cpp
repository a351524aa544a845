#include "fs/shard/peers.hpp"

#include <algorithm>

#include "lib/base/assert.hpp"

namespace cairn::fs {

std::span<std::uint8_t> Peers::room() {
    if (bytes_.size() - used_ < kMostPeerBytes) {
        bytes_.resize(used_ + 16 * std::size_t{kMostPeerBytes});
    }
    return {bytes_.data() + used_, kMostPeerBytes};
}

void Peers::stage(ShardNumber to, std::uint32_t bytes) {
    CAIRN_ASSERT(bytes != 0 && to != own_);
    staged_.push_back({to, static_cast<std::uint32_t>(used_), bytes});
    used_ += bytes;
}

std::uint64_t Peers::stage_request(ShardNumber to, const PeerRequest& request) {
    if (is_lost(to)) {
        return kUnreachable;
    }
    stage(to, put_peer_request(room(), ++last_number_, request));
    asked_.emplace_back(now_ + kTimeout, last_number_);
    return last_number_;
}

void Peers::answer(ShardNumber to, std::uint64_t number, const PeerAnswer& answer) {
    if (!is_lost(to)) {
        stage(to, put_peer_answer(room(), number, answer));
    }
}

void Peers::resume(std::uint64_t number, const PeerAnswer& answer) {
    const auto found = waiters_.find(number);
    Asked& asked = *found->second.asked;
    waiters_.erase(found);
    asked.answer_ = answer;
    if (asked.handle_) {
        asked.handle_.resume();
    }
}

// An answer without a match came too late, or belongs to a request of tell().
void Peers::take_answer(ShardNumber from, std::uint64_t number, const PeerAnswer& answer) {
    const auto found = waiters_.find(number);
    if (found != waiters_.end() && found->second.to == from) {
        resume(number, answer);
    }
}

void Peers::lose(ShardNumber peer) {
    lost_.resize(std::max<std::size_t>(lost_.size(), peer + std::size_t{1}));
    lost_[peer] = true;
    std::erase_if(staged_, [&](const Staged& staged) { return staged.to == peer; });
    std::vector<std::uint64_t> numbers;
    for (const auto& [number, waiter] : waiters_) {
        if (waiter.to == peer) {
            numbers.push_back(number);
        }
    }
    std::ranges::sort(numbers);
    for (const std::uint64_t number : numbers) {
        if (waiters_.contains(number)) {
            resume(number, {kErrorUnreachable});
        }
    }
}

void Peers::find(ShardNumber peer) {
    if (is_lost(peer)) {
        lost_[peer] = false;
    }
}

void Peers::wake() {
    while (!alarms_.empty() && alarms_.begin()->first <= now_) {
        const std::coroutine_handle<> waiter = alarms_.begin()->second;
        alarms_.erase(alarms_.begin());
        waiter.resume();
    }
    while (!asked_.empty() && (asked_.front().first <= now_ || !waiters_.contains(asked_.front().second))) {
        const std::uint64_t number = asked_.front().second;
        asked_.pop_front();
        if (waiters_.contains(number)) {
            resume(number, {kErrorUnreachable});
        }
    }
}

bool Peers::leave() noexcept {
    const bool any = !staged_.empty();
    for (const Staged& staged : staged_) {
        host_.send(staged.to, {bytes_.data() + staged.at, staged.bytes});
    }
    staged_.clear();
    used_ = 0;
    return any;
}

Instant Peers::next_deadline() const noexcept {
    const Instant alarm = alarms_.empty() ? Instant::never() : alarms_.begin()->first;
    return asked_.empty() ? alarm : std::min(alarm, asked_.front().first);
}

}  // namespace cairn::fs
