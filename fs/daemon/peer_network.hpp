// PeerNetwork: connects a shard with shards of other processes.
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "fs/daemon/foreign_calls.hpp"
#include "fs/daemon/gateway.hpp"
#include "fs/daemon/peer_links.hpp"
#include "fs/daemon/peer_mail.hpp"
#include "lib/connections/home.hpp"
#include "lib/telemetry/registry.hpp"
#include "lib/verbs/device.hpp"

namespace cairn::fs {

struct PeerNetworkConfig {
    PeerLinkConfig links{};
    std::uint32_t path_mtu_bytes = 1024;
    std::span<std::uint8_t> memory{};  // for the rings: see bytes_for()
};

// Lives on the shard's worker, and is made before the shard's tenant. It hands messages over within the shard's turns.
class PeerNetwork final : private PeerWatch {
public:
    static constexpr std::uint32_t kRingBytes = PeerLinkConfig::kRingBytes;

    // Returns how much memory the rings take.
    [[nodiscard]] static std::size_t bytes_for(const Cluster& cluster) noexcept;
    // Queue pairs for which a worker's engine must have room.
    static constexpr std::uint32_t kQueuePairs = 1024;
    static constexpr std::uint32_t kRegions = 4096;

    // Makes it. All arguments, the memory and `clients` outlive it. Errors: those of connections and Endpoint; the port
    // is taken.
    static Result<std::unique_ptr<PeerNetwork>> create(std::shared_ptr<connections::Agent> agent,
                                                       worker::Worker& worker, const PeerNetworkConfig& config);
    ~PeerNetwork();
    // Sends answers of other shards to `clients`. Called once, before the first turn.
    void serve(ShardHost& clients);

    [[nodiscard]] const Cluster& cluster() const noexcept { return config_.links.cluster; }

    // Begins a turn of the shard. In the first one the shard learns that all its peers are absent.
    void begin_turn(Shard& shard, Instant now);
    // Hands the shard calls of other machines' clients. `token_of` makes a call's token of its number.
    template <class TokenOf>
    void give_calls(Shard& shard, Instant now, const TokenOf& token_of) {
        foreign_->give(shard, now, token_of);
    }
    void answer(std::uint32_t number, std::span<const std::uint8_t> bytes) { foreign_->answer(number, bytes); }
    void send(ShardNumber to, std::span<const std::uint8_t> message) { mail_->send(to, PeerCall::Tell, message); }
    void forward(const Call& call, ShardNumber to, Instant now) { gateway_->take(call, to, now); }
    void forget(std::uint64_t client) { gateway_->forget(client); }
    [[nodiscard]] Instant next_deadline() const noexcept;
    [[nodiscard]] bool is_unanswered() const noexcept { return foreign_->is_unanswered(); }
    // Ends all connections, so peers learn at once that this shard ends.
    void leave(Instant now) { links_->leave(now); }

    [[nodiscard]] const PeerCounters& counters() const noexcept { return counters_; }

private:
    struct Found {
        ShardNumber peer = 0;
    };
    struct Lost {
        ShardNumber peer = 0;
    };
    struct Message {
        ShardNumber from = 0;
        SessionId session{};
        std::vector<std::uint8_t> bytes{};
    };

    PeerNetwork(worker::Worker& worker, const PeerNetworkConfig& config)
        : worker_(worker),
          config_(config),
          pool_(config.memory),
          registration_(worker.counters().add(telemetry::CounterList().add(counters_))) {}
    Status open(std::shared_ptr<connections::Agent> agent);
    void find_nodes();
    void on_found(ShardNumber peer, std::uint64_t life) override;
    void on_lost(ShardNumber peer) override;
    void on_message(const copyrpc::Request& request);

    worker::Worker& worker_;
    const PeerNetworkConfig config_;
    rpc::MsgPool pool_;
    PeerCounters counters_;
    const telemetry::Registration registration_;  // of the counters
    std::unique_ptr<connections::Home> home_;
    std::unique_ptr<verbs::Device> device_;
    std::unique_ptr<PeerLinks> links_;
    std::unique_ptr<PeerMail> mail_;
    std::unique_ptr<Gateway> gateway_;
    std::unique_ptr<ForeignCalls> foreign_;
    std::unique_ptr<copyrpc::Endpoint> endpoint_;
    std::vector<std::variant<Found, Lost, Message>> events_;  // oldest first
};

}  // namespace cairn::fs
