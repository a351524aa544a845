// The meeting of two shards of different processes. Each proves that it has the cluster's key, and states its facts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fs/message/fields.hpp"
#include "fs/placement/placement.hpp"

namespace cairn::fs {

constexpr std::uint32_t kPeerMagic = 0x70664363;  // "cCfp"
constexpr std::uint16_t kPeerHelloVersion = 1;

// Request types between shards. The shard that has connected sends the first three, in this order.
enum class PeerCall : std::uint8_t {
    Greet = 1,  // PeerGreeting; the answer is the other shard's
    Prove,      // PeerProof; the answer is the other shard's
    Ready,      // empty; the other shard's proof is right
    Tell,       // a message of fs/message/peers.hpp
    Forward,    // a client's call: see forwarded.hpp
    Forget,     // PeerForget
};

// Random, and new for each connection.
using PeerNonce = std::array<std::uint64_t, 2>;
using PeerMac = std::array<std::uint64_t, 4>;

// The message before the proofs.
struct PeerGreeting {
    std::uint32_t magic = kPeerMagic;
    std::uint16_t version = kPeerHelloVersion;
    std::uint16_t from = 0;
    std::uint16_t to = 0;
    PeerNonce nonce{};
    static void fields(auto& io, auto& self) {
        io(self.magic, self.version, self.from, self.to, self.nonce[0], self.nonce[1]);
    }
};

// The sender, and facts on which both shards must agree.
struct PeerFacts {
    std::uint16_t from = 0;
    std::uint16_t to = 0;
    std::uint32_t nodes = 0;
    std::uint32_t shards = 0;
    Spread spread = Spread::Even;
    std::uint32_t chunk_bytes = 0;
    std::uint64_t table_epoch = 0;
    std::uint64_t life = 0;  // the sender's process; it differs after each start
    static void fields(auto& io, auto& self) {
        io(self.from, self.to, self.nodes, self.shards, self.spread, self.chunk_bytes, self.table_epoch, self.life);
    }
};

struct PeerProof {
    PeerFacts facts{};
    PeerMac mac{};  // over both nonces and the facts, under the cluster's key
    static void fields(auto& io, auto& self) {
        PeerFacts::fields(io, self.facts);
        io(self.mac[0], self.mac[1], self.mac[2], self.mac[3]);
    }
};

struct PeerForget {
    std::uint64_t client = 0;
    static void fields(auto& io, auto& self) { io(self.client); }
};

template <class Message>
[[nodiscard]] std::vector<std::uint8_t> peer_bytes_of(const Message& message) {
    std::vector<std::uint8_t> bytes(sizeof(Message) + 16);
    FieldWriter out(bytes);
    Message::fields(out, message);
    bytes.resize(out.bytes());
    return bytes;
}

// Parses a message. Returns nothing if these bytes are no such message.
template <class Message>
[[nodiscard]] std::optional<Message> parse_peer(std::span<const std::uint8_t> bytes) {
    FieldReader in(bytes);
    Message message;
    Message::fields(in, message);
    return in.is_at_end() ? std::optional(message) : std::nullopt;
}

}  // namespace cairn::fs
