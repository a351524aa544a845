// The sessions that a server has opened, by client and token, and how many each host holds. It allocates, so it is for
// the control path only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "lib/base/assert.hpp"
#include "lib/base/secret_numbers.hpp"
#include "lib/net/address.hpp"
#include "rpc/common/host_shares.hpp"
#include "rpc/erpc/session.hpp"

namespace cairn::erpc {

// A hash for tables whose keys hostile peers may choose. Without the secret they could choose keys that all collide.
struct KeyedHash {
    SipKey key;
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
          sessions_(sessions_max, KeyedHash{derive_key(key, Purpose::SessionTables)}) {}

    // Returns the session of this client with this token, or kNone. Another client may have a session with the same
    // token, if it overheard that; the two do not disturb each other.
    [[nodiscard]] std::uint32_t find(const roce::UdAddress& client, std::uint64_t token) const noexcept {
        const auto found = sessions_.find(name_of(client, token));
        return found == sessions_.end() ? kNone : found->second;
    }
    [[nodiscard]] bool may_open(const net::IpAddress& client, std::size_t free) const {
        return held_.may_add(client, free);
    }
    // Adds a session. The client's path is pinned until end().
    void open(const roce::UdAddress& client, std::uint64_t token, std::uint32_t session) {
        sessions_.emplace(name_of(client, token), session);
        held_.add(client.path->key().remote);
    }
    void end(const roce::UdAddress& client, std::uint64_t token) {
        sessions_.erase(name_of(client, token));
        held_.remove(client.path->key().remote);
    }

private:
    [[nodiscard]] std::uint64_t name_of(const roce::UdAddress& client, std::uint64_t token) const noexcept {
        return sip_hash(names_, token, std::uint64_t{reinterpret_cast<std::uintptr_t>(client.path)},
                        std::uint64_t{client.qpn.value});
    }

    SipKey names_;
    std::unordered_map<std::uint64_t, std::uint32_t, KeyedHash> sessions_;
    rpc::HostShares held_;
};

}  // namespace cairn::erpc
