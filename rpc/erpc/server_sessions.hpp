// Which sessions a server has opened: by their clients and tokens, and how many each host holds. Control path only:
// it allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "lib/base/assert.hpp"
#include "lib/base/secret_numbers.hpp"
#include "lib/net/address.hpp"
#include "rpc/erpc/session.hpp"

namespace cairn::erpc {

// For tables whose keys strangers choose: without the secret, all of them could fall together.
struct KeyedHash {
    SipKey key;
    // mutants: erpc-keyed-hash
    [[nodiscard]] std::size_t operator()(std::uint64_t word) const noexcept { return sip_hash(key, word); }
    [[nodiscard]] std::size_t operator()(const net::IpAddress& address) const noexcept {
        return sip_hash(key, address.words()[0], address.words()[1]);
    }
};

// Only sessions that are open take memory.
class ServerSessions {
public:
    ServerSessions(std::size_t sessions_max, const SipKey& key)
        : names_(derive_key(key, Purpose::SessionTables)),
          sessions_(sessions_max, KeyedHash{derive_key(key, Purpose::SessionTables)}),
          held_(sessions_max, KeyedHash{derive_key(key, Purpose::SessionTables)}) {}

    // The session of this client with this token; kNone: there is none. Whoever overheard a token may have a session
    // with it, which is in nobody's way.
    [[nodiscard]] std::uint32_t find(const roce::UdAddress& client, std::uint64_t token) const noexcept {
        const auto found = sessions_.find(name_of(client, token));
        return found == sessions_.end() ? kNone : found->second;
    }
    // However many a host opens, a quarter of the places stays for others, and of that again: it holds at most three
    // times as many as are free.
    // mutants: erpc-server-sessions-may-open
    [[nodiscard]] bool may_open(const net::IpAddress& client, std::size_t free) const noexcept {
        const auto found = held_.find(client.share_holder());
        return (found == held_.end() ? 0 : found->second) < kShare * free;
    }
    // The client's path is pinned until end().
    void open(const roce::UdAddress& client, std::uint64_t token, std::uint32_t session) {
        sessions_.emplace(name_of(client, token), session);
        ++held_[client.path->key().remote.share_holder()];
    }
    // mutants: erpc-server-sessions-end
    void end(const roce::UdAddress& client, std::uint64_t token) {
        sessions_.erase(name_of(client, token));
        const auto found = held_.find(client.path->key().remote.share_holder());
        CAIRN_ASSERT(found != held_.end() && found->second != 0);
        if (--found->second == 0) {
            held_.erase(found);
        }
    }

private:
    static constexpr std::size_t kShare = 3;

    // mutants: erpc-server-sessions-name-of
    [[nodiscard]] std::uint64_t name_of(const roce::UdAddress& client, std::uint64_t token) const noexcept {
        return sip_hash(names_, token, std::uint64_t{reinterpret_cast<std::uintptr_t>(client.path)},
                        std::uint64_t{client.qpn.value});
    }

    SipKey names_;
    std::unordered_map<std::uint64_t, std::uint32_t, KeyedHash> sessions_;
    std::unordered_map<net::IpAddress, std::uint32_t, KeyedHash> held_;  // by host: at least one
};

}  // namespace cairn::erpc
