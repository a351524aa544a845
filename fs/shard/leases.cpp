#include "fs/shard/leases.hpp"

#include <algorithm>
#include <utility>

namespace cairn::fs {

bool Leases::comes_again(Client& client, const Caller& by) {
    if (by.slot >= client.last_calls.size()) {
        client.last_calls.resize(by.slot + std::size_t{1});
    }
    const std::uint64_t call = std::uint64_t{by.sequence} + 1;
    return std::exchange(client.last_calls[by.slot], call) == call;
}

void Leases::open(const FileId& file, const Caller& by) {
    Client& client = clients_[by.client];
    if (comes_again(client, by)) {
        return;
    }
    Holders& holders = holders_[file];
    const auto found = std::ranges::find(holders, by.client, &Holder::client);
    if (found != holders.end()) {
        ++found->opens;
        return;
    }
    holders.push_back({by.client, 1});
    client.files.insert(file);
}

bool Leases::close(const FileId& file, const Caller& by) {
    const auto known = clients_.find(by.client);
    if (known == clients_.end()) {
        return false;
    }
    if (comes_again(known->second, by)) {
        return true;
    }
    const auto held = holders_.find(file);
    if (held == holders_.end()) {
        return false;
    }
    Holders& holders = held->second;
    const auto found = std::ranges::find(holders, by.client, &Holder::client);
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
    known->second.files.erase(file);
    return true;
}

std::vector<FileId> Leases::forget(std::uint64_t client) {
    std::vector<FileId> free;
    const auto found = clients_.find(client);
    if (found == clients_.end()) {
        return free;
    }
    for (const FileId& file : found->second.files) {
        const auto held = holders_.find(file);
        held->second.erase(std::ranges::find(held->second, client, &Holder::client));
        if (held->second.empty()) {
            holders_.erase(held);
            free.push_back(file);
        }
    }
    clients_.erase(found);
    std::ranges::sort(free);  // the order in sets differs each time
    return free;
}

}  // namespace cairn::fs
