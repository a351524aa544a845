// Numbers that open doors: session tokens, request numbers, connection ids, queue pair numbers. Each is SipHash of a
// counter under a secret key, so that those seen tell nothing of those to come, nor of the key.
#pragma once

#include <cstdint>

#include "lib/base/sip_hash.hpp"

namespace cairn {

// Who draws: each has a key of its own, which follows from the owner's.
enum class Purpose : std::uint8_t {
    EngineNumbers,
    XrcNumbers,
    SessionTokens,
    RequestNumbers,
    SessionCookies,
    SessionTables,
    ConnectionIds,
    Transactions,
    InjectedFaults,
    MemoryShares,
};

// The words hashed here are nobody else's: all others that are hashed under an owner's key are below 3 * 2^62.
[[nodiscard]] constexpr SipKey derive_key(const SipKey& key, Purpose purpose) noexcept {
    const std::uint64_t first = std::uint64_t{3} << 62U | std::uint64_t{static_cast<std::uint8_t>(purpose)} << 1U;
    return {sip_hash(key, first), sip_hash(key, first | 1U)};
}

class SecretNumbers {
public:
    // `key`: of the owner, from its source of chance; two owners never share one.
    constexpr SecretNumbers(const SipKey& key, Purpose purpose) noexcept : key_(derive_key(key, purpose)) {}

    [[nodiscard]] constexpr std::uint64_t next() noexcept { return sip_hash(key_, drawn_++); }

private:
    SipKey key_;
    std::uint64_t drawn_ = 0;
};

}  // namespace cairn
