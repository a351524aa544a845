// Machines of a file system's nodes on a wire in memory, in virtual time. Some have the code by which shards reach each
// other, others send by hand.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fs/daemon/peer_network.hpp"
#include "tests/unit/copyrpc/host.hpp"
#include "tests/unit/fs_daemon/wire.hpp"

namespace cairn::fs::test {

constexpr SipKey kNodesKey{1, 2};
constexpr std::array<const char*, 3> kAddresses{"10.0.0.1", "10.0.0.2", "10.0.0.3"};

// A machine with an endpoint, which makes calls by hand.
class Machine : public copyrpc::Host, public Station {
public:
    struct Outcome {
        rpc::CallStatus status{};
        std::vector<std::uint8_t> bytes{};
    };

    Machine(const char* address, std::uint64_t seed, std::uint16_t sessions = 64)
        : Host(address, seed, config(sessions)) {}
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;
    virtual ~Machine() = default;

    // Acts in each turn after the endpoint's part; acts_at() says when it has to.
    virtual void act(Instant /*now*/) {}
    [[nodiscard]] virtual Instant acts_at() const { return Instant::never(); }
    [[nodiscard]] cairn::test::WirePort& wire_port() override { return port; }
    bool take_turn(Instant now) override {
        const bool any = turn(now);
        act(now);
        return any;
    }
    [[nodiscard]] Instant due() const override { return std::min(worker->next_deadline(), acts_at()); }

    // Connects to the first shard of the machine there.
    SessionId knock(const char* address, Instant now, std::uint16_t service = PeerLinkConfig::kFirstPort) {
        return endpoint->connect(net::IpAddress::parse(address).value(), service, now).value();
    }
    // Makes a call. Returns its number, by which its outcome is found.
    std::uint64_t call(SessionId session, PeerCall what, std::vector<std::uint8_t> bytes, Instant now,
                       std::uint32_t answer_room = kMostForwardedBytes) {
        Asked& asked = asked_[++calls];
        asked.bytes = std::move(bytes);
        asked.room.resize(answer_room);
        asked.response = {asked.room.data(), 0, static_cast<std::uint32_t>(asked.room.size()), {}};
        rpc::Call call;
        call.type = static_cast<std::uint8_t>(what);
        call.request = asked.bytes;
        call.response = &asked.response;
        call.context = this;
        call.tag = calls;
        call.completion = [](void* self, const rpc::CallResult& result) {
            auto& ended = static_cast<Machine*>(self)->outcomes;
            ASSERT_FALSE(ended.contains(result.tag));
            ended[result.tag] = {result.status, {result.response.begin(), result.response.end()}};
        };
        EXPECT_EQ(endpoint->post(session, call, now).verdict, rpc::PostVerdict::Posted);
        return calls;
    }
    [[nodiscard]] bool is_answered(std::uint64_t number) const {
        return outcomes.contains(number) && outcomes.at(number).status == rpc::CallStatus::Ok;
    }
    // Returns whether the call ended without an answer.
    [[nodiscard]] bool has_failed(std::uint64_t number) const {
        return outcomes.contains(number) && outcomes.at(number).status != rpc::CallStatus::Ok;
    }

    std::uint64_t calls = 0;
    std::map<std::uint64_t, Outcome> outcomes;

private:
    struct Asked {
        std::vector<std::uint8_t> bytes{};
        std::vector<std::uint8_t> room{};
        rpc::MsgBuffer response{};
    };

    // Returns the configuration that PeerNetwork uses.
    static copyrpc::EndpointConfig config(std::uint16_t sessions) {
        copyrpc::EndpointConfig config;
        config.ring_bytes = PeerNetwork::kRingBytes;
        config.peer_ring_bytes_max = PeerNetwork::kRingBytes;
        config.receives = 16;
        config.sessions_max = sessions;
        config.own_sessions = 2;
        config.host_sessions_max = sessions;
        config.calls_max = 2 * PeerMail::kMostCalls;
        config.answer_bytes = 256;
        config.message_bytes_max = 0;
        return config;
    }

    std::map<std::uint64_t, Asked> asked_;
};

// Returns the configuration of nodes with a shard each.
inline PeerLinkConfig links_of(ShardNumber number, std::uint32_t nodes = 2) {
    static_assert(kAddresses.size() == 3);
    PeerLinkConfig config;
    for (std::uint32_t node = 0; node != nodes; ++node) {
        config.cluster.nodes.push_back(net::IpAddress::parse(kAddresses.at(node)).value());
    }
    config.cluster.node = number;
    config.facts.from = number;
    config.facts.nodes = config.facts.shards = nodes;
    config.facts.chunk_bytes = 1U << 20U;
    config.facts.table_epoch = 1;
    config.facts.life = 100U + number;
    config.cluster_key = kNodesKey;
    return config;
}

// A machine whose shard has connections to the others'.
class Node : public Machine, public PeerWatch {
public:
    explicit Node(const PeerLinkConfig& config)
        : Machine(kAddresses.at(config.cluster.node), config.facts.life, sessions_of(config)),
          links(*endpoint, *worker, config, *this, counters) {
        EXPECT_TRUE(links.listen().ok());
    }
    ~Node() override { endpoint.reset(); }
    void act(Instant now) override { links.on_turn(now); }
    [[nodiscard]] Instant acts_at() const override { return links.next_deadline(); }

    void on_found(ShardNumber peer, std::uint64_t life) override { lives.emplace_back(peer, life); }
    void on_lost(ShardNumber peer) override { lost.push_back(peer); }
    [[nodiscard]] std::uint64_t counted(PeerCounter which) const { return counters.of(which); }
    [[nodiscard]] bool has(ShardNumber peer) const { return links.session_of(peer).has_value(); }

    PeerCounters counters;
    PeerLinks links;
    std::vector<std::pair<ShardNumber, std::uint64_t>> lives;  // the lives of found peers
    std::vector<ShardNumber> lost;

private:
    // Returns the number of sessions that PeerNetwork uses.
    static std::uint16_t sessions_of(const PeerLinkConfig& config) {
        return static_cast<std::uint16_t>(2 * (config.facts.shards - 1) + 2 * PeerLinkConfig::kMostStrangers);
    }
};

}  // namespace cairn::fs::test
