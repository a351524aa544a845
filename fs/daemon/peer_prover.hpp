// Proofs that a shard of another process has the cluster's key.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "fs/message/peer_hello.hpp"
#include "lib/base/sip_hash.hpp"

namespace cairn::fs {

// The values that bind a proof to one connection and one direction. In any other the proof is invalid.
struct PeerNonces {
    PeerNonce connecting{};
    PeerNonce accepting{};
};
enum class PeerSide : std::uint8_t { Connecting = 1, Accepting };

class PeerProver {
public:
    explicit PeerProver(const SipKey& cluster_key) noexcept;

    // Returns the proof, an HMAC-SHA256.
    [[nodiscard]] PeerMac prove(PeerSide side, const PeerNonces& nonces, const PeerFacts& facts) const;
    // Judges a proof. The time that it takes does not depend on the bytes.
    [[nodiscard]] bool is_proof(PeerSide side, const PeerNonces& nonces, const PeerProof& proof) const;

private:
    std::array<std::uint64_t, 4> key_;
};

// Returns the reason why the two cannot serve one file system together, or nothing if they can.
[[nodiscard]] std::optional<std::string> difference_of(const PeerFacts& ours, const PeerFacts& theirs);

}  // namespace cairn::fs
