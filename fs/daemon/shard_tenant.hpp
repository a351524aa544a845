// ShardTenant: a shard on a worker, and the channels of this machine's clients to it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fs/channel/shard_end.hpp"
#include "fs/daemon/peer_network.hpp"
#include "fs/daemon/shard_door.hpp"
#include "fs/daemon/shard_mail.hpp"
#include "fs/shard/shard.hpp"
#include "lib/telemetry/counters.hpp"
#include "lib/telemetry/registry.hpp"
#include "lib/worker/worker.hpp"

namespace cairn::fs {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_SHARD_COUNTERS(X)                                                       \
    X(Calls, "fs_calls", "requests of clients")                                       \
    X(Failed, "fs_failed", "requests that were answered with an error")               \
    X(Malformed, "fs_malformed", "messages that are no requests")                     \
    X(Repeated, "fs_repeated", "requests that were answered before a restart")        \
    X(OtherShard, "fs_other_shard", "requests for another shard")                     \
    X(Damaged, "fs_damaged", "reads of blocks whose checksum refuses them")           \
    X(RemovedFiles, "fs_removed_files", "files whose space came back")                \
    X(Syncs, "fs_syncs", "times that a medium of pages was made durable")             \
    X(Turns, "fs_turns", "turns with work: calls divided by it are calls per commit") \
    X(Breaches, "fs_breaches", "channels that had what no client writes")

CAIRN_DECLARE_COUNTERS(TenantCounter, CAIRN_SHARD_COUNTERS);

// Lives on one worker. Another thread uses it as a ShardDoor; all work is done on the worker's thread.
class ShardTenant final : public worker::Tenant, public ShardDoor, private ShardHost {
public:
    static constexpr std::uint32_t kCallsATurn = 64;  // other calls wait for the next turn

    // Makes the tenant. All arguments outlive it. `seed` is drawn anew at each start. The process's user owns the
    // store.
    ShardTenant(worker::Worker& worker, NewsBox& news, Store& store, const ClusterFacts& facts, ShardNumber number,
                std::uint64_t seed, Instant now);
    ~ShardTenant();
    // Sets the shards of the file system, by number, itself among them; nullptr for shards of other processes. Called
    // before any of their workers turns. The tenants end after all turns. Errors: the process has no descriptor left.
    Status set_peers(const std::vector<ShardTenant*>& peers);
    // Sets the network to shards of other processes. It lives on the same worker, was made before the tenant, and
    // outlives it. Called before the first turn.
    void set_network(PeerNetwork& network) {
        network_ = &network;
        network.serve(*this);
    }

    // ShardDoor: any thread may call these.
    void open_channel(ChannelOrder order) override;
    void drain(std::uint64_t client) override;
    void forget(std::uint64_t client) override;
    // Ends the worker's sleep. Any thread may call it.
    void wake();

    // Tenant: called on the worker's thread.
    bool on_turn(Instant now) noexcept override;
    [[nodiscard]] Instant next_deadline() const noexcept override;
    // Takes no more calls. Calls that were taken are answered in later turns.
    void stop_taking() noexcept { takes_ = false; }
    [[nodiscard]] bool is_unanswered() const noexcept {
        return unanswered_ != 0 || (network_ != nullptr && network_->is_unanswered());
    }
    // Prepares for the end, after the worker's last turn. Errors: see Shard::settle().
    [[nodiscard]] Status settle() { return shard_.settle(); }

    [[nodiscard]] const telemetry::CounterSet<TenantCounter>& counters() const noexcept { return counters_; }

private:
    struct Channel;
    class Errand;

    void answer(CallToken token, std::span<const std::uint8_t> bytes) noexcept override;
    void send(ShardNumber to, std::span<const std::uint8_t> message) noexcept override;

    void post(std::unique_ptr<Errand> errand);
    void add(ChannelOrder order);
    void end_channels(std::uint64_t client);
    [[nodiscard]] bool has_work() const noexcept;
    void take_messages() noexcept;
    void take_calls() noexcept;
    void take_call(const Call& call) noexcept;
    [[nodiscard]] std::uint32_t take_from(std::size_t place, std::uint32_t most) noexcept;
    void retire() noexcept;
    void tell(ShardNews::What what, std::uint64_t client) noexcept;
    void publish() noexcept;

    worker::Worker& worker_;
    const worker::Address address_;
    NewsBox& news_;
    Shard shard_;
    ShardMail mail_;
    std::vector<bool> is_near_;                       // by shard: true if it is in this process
    PeerNetwork* network_ = nullptr;                  // null if all shards are in this process
    std::vector<std::unique_ptr<Channel>> channels_;  // by place; a place may be free
    std::vector<std::uint64_t> draining_;             // clients
    std::vector<std::uint64_t> forgetting_;
    std::size_t first_ = 0;  // the place that comes first in the next turn
    std::uint32_t generation_ = 0;
    std::uint32_t unanswered_ = 0;
    bool takes_ = true;
    bool more_ = false;  // the shard has more work to do at once
    ShardCounters published_{};
    telemetry::CounterSet<TenantCounter> counters_;
    const telemetry::Registration registration_;  // of the counters
    worker::Tenancy tenancy_;
};

}  // namespace cairn::fs
