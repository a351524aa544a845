// A host that speaks to a node in the name of shard 0, by hand.
#pragma once

#include <optional>

#include "tests/unit/fs_daemon/node.hpp"

namespace cairn::fs::test {

class Stranger : public Machine {
public:
    explicit Stranger(Wire& wire, const char* address = kAddresses[0], std::uint64_t seed = 99)
        : Machine(address, seed), wire_(wire) {
        wire.add(*this);
        facts = links_of(0).facts;
        facts.to = 1;
        facts.life = 100;
        connect();
    }
    // Moves to another connection to shard 1.
    void connect() {
        session = knock(kAddresses[1], wire_.now);
        wire_.pass(milliseconds(5));
    }
    [[nodiscard]] static PeerGreeting greeting() { return {.from = 0, .to = 1, .nonce = {5, 6}}; }
    // Returns the answer, or nullopt if the call was refused.
    std::optional<std::vector<std::uint8_t>> ask(PeerCall what, std::vector<std::uint8_t> bytes) {
        const std::uint64_t number = call(session, what, std::move(bytes), wire_.now);
        EXPECT_TRUE(wire_.pass_until([&] { return outcomes.contains(number); }));
        return is_answered(number) ? std::optional(outcomes.at(number).bytes) : std::nullopt;
    }
    // Makes the first round. Returns true if it was answered.
    bool greet(const PeerGreeting& greeting = Stranger::greeting()) {
        const auto answer = ask(PeerCall::Greet, peer_bytes_of(greeting));
        const auto theirs = answer ? parse_peer<PeerGreeting>(*answer) : std::nullopt;
        nonces = {greeting.nonce, theirs ? theirs->nonce : PeerNonce{}};
        return theirs.has_value();
    }
    [[nodiscard]] PeerProof proof(const SipKey& key = kNodesKey, PeerSide side = PeerSide::Connecting) const {
        return {facts, PeerProver(key).prove(side, nonces, facts)};
    }
    // Makes the second round.
    std::optional<PeerProof> prove(const PeerProof& proof) {
        const auto answer = ask(PeerCall::Prove, peer_bytes_of(proof));
        return answer ? parse_peer<PeerProof>(*answer) : std::nullopt;
    }
    // Makes all three rounds, as a host with the key.
    bool enter() { return greet() && prove(proof()) && ask(PeerCall::Ready, {0}); }
    // Returns whether the node has closed the connection.
    [[nodiscard]] bool is_out() const {
        return std::ranges::any_of(events, [](copyrpc::SessionEvent event) {
            return event == copyrpc::SessionEvent::Disconnected || event == copyrpc::SessionEvent::PeerLost;
        });
    }

    PeerFacts facts{};
    PeerNonces nonces{};
    SessionId session{};

private:
    Wire& wire_;
};

}  // namespace cairn::fs::test
