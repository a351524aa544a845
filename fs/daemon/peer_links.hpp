// PeerLinks: a shard's connections to shards of other processes. Each peer has proved that it has the cluster's key.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/daemon/cluster.hpp"
#include "fs/daemon/peer_counters.hpp"
#include "fs/daemon/peer_prover.hpp"
#include "lib/worker/worker.hpp"
#include "rpc/copyrpc/endpoint.hpp"

namespace cairn::fs {

// Is notified of each peer that comes or is lost. At first all peers are absent.
class PeerWatch {
public:
    // Called when a peer has connected. `life` differs after each start of the peer's process.
    virtual void on_found(ShardNumber peer, std::uint64_t life) = 0;
    virtual void on_lost(ShardNumber peer) = 0;

protected:
    ~PeerWatch() = default;
};

struct PeerLinkConfig {
    static constexpr std::uint16_t kFirstPort = 0x4653;  // shard 0's of a node
    static constexpr std::uint16_t kMostStrangers = 8;   // connections without a proof yet
    static constexpr std::uint32_t kRingBytes = 128U << 10U;

    Cluster cluster{};
    PeerFacts facts{};  // ours; `from` is this shard's number
    SipKey cluster_key{};
    Duration patience = seconds(2);  // how long a connection may take to prove itself
    // Called with a line for the operator.
    void (*say)(const std::string& line) = nullptr;
};

// Lives on the endpoint's worker. Of two shards the one with the lower number connects, again and again. Before a
// peer's proof only its greeting and its proof are read.
class PeerLinks {
public:
    // Makes it. All arguments outlive it.
    PeerLinks(copyrpc::Endpoint& endpoint, worker::Worker& worker, const PeerLinkConfig& config, PeerWatch& watch,
              PeerCounters& counters);
    PeerLinks(const PeerLinks&) = delete;
    PeerLinks& operator=(const PeerLinks&) = delete;
    // Accepts connections from now on. Errors: the port is taken.
    Status listen();

    // Does what is due. Called between the endpoint's turns.
    void on_turn(Instant now);
    [[nodiscard]] Instant next_deadline() const noexcept;
    // Ends all connections.
    void leave(Instant now);

    // Returns the connection to the peer, or nothing while there is none.
    [[nodiscard]] std::optional<SessionId> session_of(ShardNumber peer) const noexcept;
    // Returns the peer that has this connection, or nothing.
    [[nodiscard]] std::optional<ShardNumber> peer_of(SessionId session) const noexcept;
    // Ends a connection after bytes that no peer sends. If a peer had the connection, the peer is lost.
    void on_breach(SessionId session);
    // Ends the connection to a peer. The peer is lost until it connects again.
    void lose(ShardNumber peer);
    [[nodiscard]] const Cluster& cluster() const noexcept { return config_.cluster; }

private:
    enum class Step : std::uint8_t { Connecting, Greeting, Proving, Awaiting, Proven, Ended };
    struct Link {
        SessionId session{};
        bool ours = false;
        Step step = Step::Connecting;
        ShardNumber peer = 0;
        PeerNonces nonces{};
        std::uint64_t life = 0;
        Instant by{};                      // deadline of the proof
        std::vector<std::uint8_t> said{};  // our message; it stays until the answer
    };
    struct Peer {
        ShardNumber number = 0;
        Link* link = nullptr;  // the proven connection
        Instant connect_at = Instant::never();
        Duration backoff{};
    };
    static constexpr Duration kBackoffLeast = milliseconds(50);
    static constexpr Duration kBackoffMost = seconds(1);
    static constexpr Duration kConnectMost = seconds(10);

    template <void (PeerLinks::*kHandle)(Link&, const copyrpc::Request&)>
    static void handle(void* context, const copyrpc::Request& request);
    void set_handlers();
    void greet(Link& link);
    void on_greeting(Link& link, const copyrpc::Request& request);
    void on_proof(Link& link, const copyrpc::Request& request);
    void on_ready(Link& link, const copyrpc::Request& request);
    void on_event(SessionId session, rpc::LinkEvent event, bool ours);
    void on_answer(Link& link, const rpc::CallResult& result);
    void on_their_greeting(Link& link, std::span<const std::uint8_t> bytes);
    void on_their_proof(Link& link, std::span<const std::uint8_t> bytes);
    void connect(Peer& peer, Instant now);
    void admit(SessionId session);
    void ask(Link& link, PeerCall what, std::vector<std::uint8_t> bytes);
    void become_proven(Link& link);
    void end(Link& link);
    void refuse(Link& link, const std::string& why);
    void differs(const Link& link, const std::string& what);
    [[nodiscard]] PeerFacts facts_to(ShardNumber peer) const noexcept;
    [[nodiscard]] Link* find(SessionId session) const noexcept;
    [[nodiscard]] Peer* peer(ShardNumber number) noexcept;

    copyrpc::Endpoint& endpoint_;
    worker::Worker& worker_;
    const PeerLinkConfig config_;
    const PeerProver prover_;
    PeerWatch& watch_;
    PeerCounters& counters_;
    std::vector<Peer> peers_;
    std::vector<std::unique_ptr<Link>> links_;  // oldest first
    Instant said_at_{};
    bool any_ended_ = false;
};

}  // namespace cairn::fs
