// Which sessions a server has opened: by their clients and tokens, and how many each source holds. Control path only:
// it allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <unordered_map>

#include "lib/base/assert.hpp"
#include "lib/base/secret_numbers.hpp"
#include "lib/net/address.hpp"
#include "rpc/erpc/session.hpp"

namespace cairn::erpc {

// Who is meant by one source: whoever has an address has its UDP ports, and most often all of its IPv6 network of 64
// bits. Of a link-local address the lower half tells hosts apart.
[[nodiscard]] inline std::uint64_t source_of(const net::IpAddress& address) noexcept {
    constexpr std::uint64_t kLinkLocal = std::uint64_t{0xfe80} << 48U;
    Be64 upper;
    Be64 lower;
    std::memcpy(&upper, address.octets().data(), sizeof(upper));
    std::memcpy(&lower, address.octets().data() + sizeof(upper), sizeof(lower));
    return address.is_v4() || upper.get() == kLinkLocal ? lower.get() : upper.get();
}

// For tables whose keys strangers choose: without the secret, all of them could fall together.
struct KeyedHash {
    SipKey key;
    [[nodiscard]] std::size_t operator()(std::uint64_t word) const noexcept { return sip_hash(key, word); }
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
    // However many a source opens, a quarter of the places stays for others, and of that again: it holds at most three
    // times as many as are free.
    [[nodiscard]] bool may_open(std::uint64_t source, std::size_t free) const noexcept {
        const auto found = held_.find(source);
        return (found == held_.end() ? 0 : found->second) < kShare * free;
    }
    // The client's path is pinned until end().
    void open(const roce::UdAddress& client, std::uint64_t token, std::uint32_t session) {
        sessions_.emplace(name_of(client, token), session);
        ++held_[source_of(client.path->key().remote)];
    }
    void end(const roce::UdAddress& client, std::uint64_t token) {
        sessions_.erase(name_of(client, token));
        const std::uint64_t source = source_of(client.path->key().remote);
        const auto found = held_.find(source);
        CAIRN_ASSERT(found != held_.end() && found->second != 0);
        if (--found->second == 0) {
            held_.erase(found);
        }
    }

private:
    static constexpr std::size_t kShare = 3;

    [[nodiscard]] std::uint64_t name_of(const roce::UdAddress& client, std::uint64_t token) const noexcept {
        return sip_hash(names_, token, std::uint64_t{reinterpret_cast<std::uintptr_t>(client.path)},
                        std::uint64_t{client.qpn.value});
    }

    SipKey names_;
    std::unordered_map<std::uint64_t, std::uint32_t, KeyedHash> sessions_;
    std::unordered_map<std::uint64_t, std::uint32_t, KeyedHash> held_;  // by source: at least one
};

}  // namespace cairn::erpc
