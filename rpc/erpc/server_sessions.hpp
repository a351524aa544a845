// Which sessions a server has opened: by their clients' tokens, and how many each source holds. Control path only: it
// allocates.
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
        : sessions_(sessions_max, KeyedHash{derive_key(key, Purpose::SessionTables)}),
          held_(sessions_max, KeyedHash{derive_key(key, Purpose::SessionTables)}) {}

    // kNone: there is none.
    [[nodiscard]] std::uint32_t find(std::uint64_t token) const noexcept {
        const auto found = sessions_.find(token);
        return found == sessions_.end() ? kNone : found->second;
    }
    // However many a source opens, a quarter of the places stays for others, and of that again: it holds at most three
    // times as many as are free.
    [[nodiscard]] bool may_open(std::uint64_t source, std::size_t free) const noexcept {
        const auto found = held_.find(source);
        return (found == held_.end() ? 0 : found->second) < kShare * free;
    }
    void open(std::uint64_t token, std::uint64_t source, std::uint32_t session) {
        sessions_.emplace(token, session);
        ++held_[source];
    }
    void end(std::uint64_t token, std::uint64_t source) {
        sessions_.erase(token);
        const auto found = held_.find(source);
        CAIRN_ASSERT(found != held_.end() && found->second != 0);
        if (--found->second == 0) {
            held_.erase(found);
        }
    }

private:
    static constexpr std::size_t kShare = 3;

    std::unordered_map<std::uint64_t, std::uint32_t, KeyedHash> sessions_;
    std::unordered_map<std::uint64_t, std::uint32_t, KeyedHash> held_;  // by source: at least one
};

}  // namespace cairn::erpc
