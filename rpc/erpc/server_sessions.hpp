// The sessions that a server has opened, by client and token, and how many each host holds. Allocates, so it is for the
// control path only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "lib/base/assert.hpp"
#include "lib/base/secret_numbers.hpp"
#include "lib/net/address.hpp"
#include "rpc/erpc/session.hpp"

namespace cairn::erpc {

// A hash for tables whose keys strangers choose. Without the secret they could choose keys that all collide.
struct KeyedHash {
    SipKey key;
    // mutants: erpc-keyed-hash
    [[nodiscard]] std::size_t operator()(std::uint64_t word) const noexcept { return sip_hash(key, word); }
    [[nodiscard]] std::size_t operator()(const net::IpAddress& address) const noexcept {
        return sip_hash(key, address.words()[0], address.words()[1]);
    }
};

// Memory grows with the number of open sessions.
class ServerSessions {
public:
    ServerSessions(std::size_t sessions_max, const SipKey& key)
        : names_(derive_key(key, Purpose::SessionTables)),
          sessions_(sessions_max, KeyedHash{derive_key(key, Purpose::SessionTables)}),
          held_(sessions_max, KeyedHash{derive_key(key, Purpose::SessionTables)}) {}

    // Returns the session of this client with this token, or kNone. Another client may have a session with the same
    // token, if it overheard that; the two do not disturb each other.
    [[nodiscard]] std::uint32_t find(const roce::UdAddress& client, std::uint64_t token) const noexcept {
        const auto found = sessions_.find(name_of(client, token));
        return found == sessions_.end() ? kNone : found->second;
    }
    // True if the host may open another session: it holds less than three times as many as are free. So a quarter of
    // the places stays for others however many sessions a host opens. A second such host leaves a quarter of these.
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
    std::unordered_map<net::IpAddress, std::uint32_t, KeyedHash> held_;  // sessions by host, never 0
};

}  // namespace cairn::erpc
