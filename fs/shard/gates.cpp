#include "fs/shard/gates.hpp"

#include <algorithm>

#include "lib/base/assert.hpp"

namespace cairn::fs {

bool Gates::any_name_of(const FileId& directory) const {
    return std::ranges::any_of(closed_, [&](const auto& closed) {
        return closed.first.kind == Gate::Kind::Name && closed.first.file == directory;
    });
}

void Gates::close(const Gate& gate) {
    const bool was_open = closed_.try_emplace(gate).second;
    CAIRN_ASSERT(was_open);
}

void Gates::open(const Gate& gate) {
    const auto found = closed_.find(gate);
    CAIRN_ASSERT(found != closed_.end());
    const Waiting waiting = std::move(found->second);
    closed_.erase(found);
    for (const std::coroutine_handle<> coroutine : waiting.coroutines) {
        ready_.emplace_back(coroutine);
    }
    for (const std::uint64_t number : waiting.calls) {
        if (const auto call = calls_.find(number); call != calls_.end()) {
            ready_.emplace_back(std::move(call->second));
            calls_.erase(call);
        }
    }
}

void Gates::park(const Gate& gate, KeptCall call, Instant now) {
    const auto found = closed_.find(gate);
    CAIRN_ASSERT(found != closed_.end());
    calls_.emplace(++last_number_, std::move(call));
    found->second.calls.push_back(last_number_);
    parked_.push_back({now + kTimeout, last_number_});
}

std::optional<Gates::Ready> Gates::take_ready() {
    std::optional<Ready> next;
    if (!ready_.empty()) {
        next.emplace(std::move(ready_.front()));
        ready_.pop_front();
    }
    return next;
}

std::vector<KeptCall> Gates::take_expired(Instant now) {
    std::vector<KeptCall> expired;
    while (!parked_.empty() && (parked_.front().due <= now || !calls_.contains(parked_.front().number))) {
        if (const auto call = calls_.find(parked_.front().number); call != calls_.end()) {
            expired.push_back(std::move(call->second));
            calls_.erase(call);
        }
        parked_.pop_front();
    }
    return expired;
}

}  // namespace cairn::fs
