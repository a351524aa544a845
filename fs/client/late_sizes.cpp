#include "fs/client/late_sizes.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "fs/client/coarse_time.hpp"
#include "lib/base/assert.hpp"

namespace cairn::fs {

void LateSizes::add(const LateSize& more) {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = entries_.try_emplace(more.file, Entry{more});
    Entry& entry = at->second;
    if (is_new) {
        count_.store(static_cast<std::uint32_t>(entries_.size()), std::memory_order_relaxed);
        changed_.notify_one();
        return;
    }
    if (entry.is_told && !std::exchange(entry.has_more, true)) {
        entry.size.since = more.since;
    }
    entry.size.end = std::max(entry.size.end, more.end);
    entry.size.generation = std::max(entry.size.generation, more.generation);
    entry.size.grant = more.grant;
}

bool LateSizes::has(const FileId& file) const {
    if (!any()) {
        return false;
    }
    const std::lock_guard lock(mutex_);
    return entries_.contains(file);
}

LateSizes::Begun LateSizes::begin(const FileId& file, LateSize& size) {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(file);
    if (at == entries_.end()) {
        return Begun::Nothing;
    }
    if (std::exchange(at->second.is_told, true)) {
        return Begun::Another;
    }
    size = at->second.size;
    return Begun::Mine;
}

void LateSizes::end(const FileId& file) {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(file);
    CAIRN_ASSERT(at != entries_.end() && at->second.is_told);
    if (std::exchange(at->second.has_more, false)) {
        at->second.is_told = false;
        changed_.notify_one();
        return;
    }
    entries_.erase(at);
    count_.store(static_cast<std::uint32_t>(entries_.size()), std::memory_order_relaxed);
}

void LateSizes::put_back(const FileId& file, Instant now) {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_.at(file);
    CAIRN_ASSERT(entry.is_told);
    entry.is_told = false;
    entry.has_more = false;
    entry.size.since = now;
    changed_.notify_one();
}

std::vector<FileId> LateSizes::all() const {
    const std::lock_guard lock(mutex_);
    std::vector<FileId> files;
    for (const auto& [file, entry] : entries_) {
        files.push_back(file);
    }
    return files;
}

std::vector<FileId> LateSizes::due(Instant now) const {
    const std::lock_guard lock(mutex_);
    return due_by(now);
}

std::vector<FileId> LateSizes::due_by(Instant now) const {
    std::vector<FileId> files;
    for (const auto& [file, entry] : entries_) {
        if (!entry.is_told && entry.size.since + kMost <= now) {
            files.push_back(file);
        }
    }
    return files;
}

Instant LateSizes::next_due() const {
    Instant next = Instant::never();
    for (const auto& [file, entry] : entries_) {
        next = entry.is_told ? next : std::min(next, entry.size.since + kMost);
    }
    return next;
}

std::vector<FileId> LateSizes::wait_due() {
    std::unique_lock lock(mutex_);
    std::vector<FileId> files;
    while (!stops_ && files.empty()) {
        const Instant next = next_due();
        if (next == Instant::never()) {
            changed_.wait(lock);
        } else {
            const auto span = std::chrono::nanoseconds(std::max<std::int64_t>((next - coarse_now()).ns, 0));
            changed_.wait_for(lock, span);
        }
        files = due_by(coarse_now());
    }
    return stops_ ? std::vector<FileId>{} : files;
}

void LateSizes::stop() {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    changed_.notify_one();
}

}  // namespace cairn::fs
