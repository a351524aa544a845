#include "fs/client/buffers.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "lib/base/assert.hpp"

namespace cairn::fs {

namespace {

constexpr std::size_t kGrain = 4096;

}  // namespace

BufferPool::BufferPool(SharedMemory memory, std::uint64_t meeting) : memory_(std::move(memory)), meeting_(meeting) {
    free_.emplace(0, memory_.bytes().size());
}

// Takes the first free run that is large enough.
std::uint8_t* BufferPool::take(std::size_t bytes) {
    if (bytes == 0 || bytes > memory_.bytes().size()) {
        return nullptr;
    }
    const std::size_t wanted = (bytes + kGrain - 1) / kGrain * kGrain;
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(free_, [wanted](const auto& each) { return each.second >= wanted; });
    if (found == free_.end()) {
        return nullptr;
    }
    const auto [begin, room] = *found;
    free_.erase(found);
    if (room != wanted) {
        free_.emplace(begin + wanted, room - wanted);
    }
    taken_.emplace(begin, wanted);
    return memory_.bytes().data() + begin;
}

bool BufferPool::give_back(const std::uint8_t* buffer) {
    if (buffer < memory_.bytes().data() || buffer >= memory_.bytes().data() + memory_.bytes().size()) {
        return false;
    }
    const std::lock_guard lock(mutex_);
    const auto found = taken_.find(static_cast<std::size_t>(buffer - memory_.bytes().data()));
    if (found == taken_.end()) {
        return false;
    }
    auto [begin, bytes] = *found;
    taken_.erase(found);
    auto behind = free_.lower_bound(begin);
    if (behind != free_.end() && behind->first == begin + bytes) {
        bytes += behind->second;
        behind = free_.erase(behind);
    }
    if (behind != free_.begin() && std::prev(behind)->first + std::prev(behind)->second == begin) {
        std::prev(behind)->second += bytes;
    } else {
        free_.emplace(begin, bytes);
    }
    return true;
}

std::optional<std::uint32_t> BufferPool::place_of(std::span<const std::uint8_t> bytes) const noexcept {
    const std::uint8_t* const first = memory_.bytes().data();
    const std::uint8_t* const end = first + memory_.bytes().size();
    const bool is_within =
        bytes.data() >= first && bytes.data() <= end && bytes.size() <= static_cast<std::size_t>(end - bytes.data());
    return is_within ? std::optional(static_cast<std::uint32_t>(bytes.data() - first)) : std::nullopt;
}

bool BufferPool::is_unused() const {
    const std::lock_guard lock(mutex_);
    return taken_.empty();
}

void Buffers::add(std::unique_ptr<BufferPool> pool) {
    const std::lock_guard lock(mutex_);
    std::erase_if(pools_, [](const auto& each) { return each->is_unused(); });
    pools_.push_back(std::move(pool));
    count_.store(pools_.size(), std::memory_order_relaxed);
}

BufferPool* Buffers::pool_of(std::uint64_t meeting) const noexcept {
    const auto found = std::ranges::find(pools_, meeting, [](const auto& each) { return each->meeting(); });
    return found == pools_.end() ? nullptr : found->get();
}

std::uint8_t* Buffers::take(std::size_t bytes, std::uint64_t meeting) {
    const std::lock_guard lock(mutex_);
    BufferPool* const pool = pool_of(meeting);
    return pool == nullptr ? nullptr : pool->take(bytes);
}

void Buffers::give_back(const std::uint8_t* buffer) {
    const std::lock_guard lock(mutex_);
    const bool was_taken = std::ranges::any_of(pools_, [buffer](const auto& each) { return each->give_back(buffer); });
    CAIRN_ASSERT(was_taken);
}

std::optional<std::uint32_t> Buffers::place_of(std::span<const std::uint8_t> bytes,
                                               std::uint64_t meeting) const noexcept {
    if (count_.load(std::memory_order_relaxed) == 0) {
        return std::nullopt;
    }
    const std::lock_guard lock(mutex_);
    const BufferPool* const pool = pool_of(meeting);
    return pool == nullptr ? std::nullopt : pool->place_of(bytes);
}

}  // namespace cairn::fs
