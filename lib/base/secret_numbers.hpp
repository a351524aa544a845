// Numbers that a peer must not guess: session tokens, request numbers, connection ids, queue pair numbers. Each is
// SipHash of a counter under a secret key. So the numbers seen so far reveal neither later numbers nor the key.
#pragma once

#include <cstdint>

#include "lib/base/sip_hash.hpp"

namespace cairn {

// The purpose of secret numbers. Each purpose has a key of its own, derived from the owner's key.
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

// Returns the key of a purpose. The words hashed here are at least 3 * 2^62. All other words hashed under an owner's
// key are below that. So no two purposes hash the same word.
[[nodiscard]] constexpr SipKey derive_key(const SipKey& key, Purpose purpose) noexcept {
    const std::uint64_t first = std::uint64_t{3} << 62U | std::uint64_t{static_cast<std::uint8_t>(purpose)} << 1U;
    return {sip_hash(key, first), sip_hash(key, first | 1U)};
}

class SecretNumbers {
public:
    // Begins a sequence of numbers. `key` belongs to the owner and came from its source of entropy. Two owners never
    // share a key.
    constexpr SecretNumbers(const SipKey& key, Purpose purpose) noexcept : key_(derive_key(key, purpose)) {}

    [[nodiscard]] constexpr std::uint64_t next() noexcept { return sip_hash(key_, drawn_++); }

private:
    SipKey key_;
    std::uint64_t drawn_ = 0;
};

}  // namespace cairn
