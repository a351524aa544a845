#include "fs/daemon/peer_prover.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstring>

#include "lib/base/assert.hpp"

namespace cairn::fs {

namespace {

constexpr std::uint64_t kPeerProofs = 0x70656572;  // "peer": the purpose from which the key is derived

struct Proved {
    std::uint32_t magic = kPeerMagic;
    std::uint16_t version = kPeerHelloVersion;
    PeerSide side{};
    const PeerNonces& nonces;
    const PeerFacts& facts;
    static void fields(auto& io, auto& self) {
        io(self.magic, self.version, self.side, self.nonces.connecting[0], self.nonces.connecting[1],
           self.nonces.accepting[0], self.nonces.accepting[1]);
        PeerFacts::fields(io, self.facts);
    }
};

}  // namespace

PeerProver::PeerProver(const SipKey& cluster_key) noexcept : key_{} {
    for (std::uint64_t word = 0; word != key_.size(); ++word) {
        key_[word] = sip_hash(cluster_key, kPeerProofs, word);
    }
}

PeerMac PeerProver::prove(PeerSide side, const PeerNonces& nonces, const PeerFacts& facts) const {
    std::array<std::uint8_t, 256> bytes{};
    FieldWriter out(bytes);
    const Proved proved{.side = side, .nonces = nonces, .facts = facts};
    Proved::fields(out, proved);
    CAIRN_ASSERT(!out.failed());
    std::array<std::uint8_t, EVP_MAX_MD_SIZE> digest{};
    unsigned length = 0;
    const auto* const made =
        HMAC(EVP_sha256(), key_.data(), sizeof(key_), bytes.data(), out.bytes(), digest.data(), &length);
    CAIRN_ASSERT(made != nullptr && length == sizeof(PeerMac));
    PeerMac mac{};
    std::memcpy(mac.data(), digest.data(), sizeof(mac));
    return mac;
}

bool PeerProver::is_proof(PeerSide side, const PeerNonces& nonces, const PeerProof& proof) const {
    const PeerMac right = prove(side, nonces, proof.facts);
    return CRYPTO_memcmp(right.data(), proof.mac.data(), sizeof(right)) == 0;
}

std::optional<std::string> difference_of(const PeerFacts& ours, const PeerFacts& theirs) {
    const auto differs = [](const char* what, auto own, auto other) -> std::optional<std::string> {
        return own == other ? std::nullopt : std::optional(fmt::format("{}: {} here, {} there", what, own, other));
    };
    for (const std::optional<std::string>& one :
         {differs("number of nodes", ours.nodes, theirs.nodes), differs("number of shards", ours.shards, theirs.shards),
          differs("chunk size", ours.chunk_bytes, theirs.chunk_bytes),
          differs("placement", static_cast<unsigned>(ours.spread), static_cast<unsigned>(theirs.spread)),
          differs("epoch of the slot table", ours.table_epoch, theirs.table_epoch),
          differs("number of the shard there", ours.to, theirs.from),
          differs("number of the shard here", ours.from, theirs.to)}) {
        if (one) {
            return one;
        }
    }
    return std::nullopt;
}

}  // namespace cairn::fs
