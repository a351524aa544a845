#include "fs/client/directory_cache.hpp"

#include <functional>

namespace cairn::fs {

std::size_t DirectoryCache::place(const FileId& parent, std::string_view name) noexcept {
    return (IdHash()(parent) ^ std::hash<std::string_view>()(name)) % kEntries;
}

const FileId* DirectoryCache::find(const FileId& parent, std::string_view name, Instant now) const noexcept {
    if (entries_.empty()) {
        return nullptr;
    }
    const Entry& entry = entries_[place(parent, name)];
    return now < entry.ends && is_of(entry, parent, name) ? &entry.child : nullptr;
}

void DirectoryCache::put(const FileId& parent, std::string_view name, const FileId& child, Instant now) {
    entries_.resize(kEntries);
    Entry& entry = entries_[place(parent, name)];
    entry.parent = parent;
    entry.child = child;
    entry.name.assign(name);
    entry.ends = now + kLifetime;
}

void DirectoryCache::drop(const FileId& parent, std::string_view name) noexcept {
    if (entries_.empty()) {
        return;
    }
    Entry& entry = entries_[place(parent, name)];
    if (is_of(entry, parent, name)) {
        entry.ends = {};
    }
}

}  // namespace cairn::fs
