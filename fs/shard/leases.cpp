#include "fs/shard/leases.hpp"

#include <algorithm>

namespace cairn::fs {

// mutants: fs-leases
void Leases::open(const FileId& file, std::uint64_t client) {
    Holders& holders = holders_[file];
    const auto found = std::ranges::find(holders, client, &Holder::client);
    if (found != holders.end()) {
        ++found->opens;
        return;
    }
    holders.push_back({client, 1});
    files_[client].insert(file);
}

bool Leases::close(const FileId& file, std::uint64_t client) {
    const auto held = holders_.find(file);
    if (held == holders_.end()) {
        return false;
    }
    Holders& holders = held->second;
    const auto found = std::ranges::find(holders, client, &Holder::client);
    if (found == holders.end()) {
        return false;
    }
    if (--found->opens != 0) {
        return true;
    }
    holders.erase(found);
    if (holders.empty()) {
        holders_.erase(held);
    }
    auto& files = files_[client];
    files.erase(file);
    if (files.empty()) {
        files_.erase(client);
    }
    return true;
}

std::vector<FileId> Leases::forget(std::uint64_t client) {
    std::vector<FileId> free;
    const auto found = files_.find(client);
    if (found == files_.end()) {
        return free;
    }
    for (const FileId& file : found->second) {
        const auto held = holders_.find(file);
        held->second.erase(std::ranges::find(held->second, client, &Holder::client));
        if (held->second.empty()) {
            holders_.erase(held);
            free.push_back(file);
        }
    }
    files_.erase(found);
    std::ranges::sort(free);  // sets have them in another order each time
    return free;
}

}  // namespace cairn::fs
