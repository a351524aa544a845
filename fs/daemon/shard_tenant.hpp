// ShardTenant: a shard on a worker, and the channels by which clients of this machine call it.
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

// Lives on one worker. As a ShardDoor it is used by another thread, and does everything on the worker's.
class ShardTenant final : public worker::Tenant, public ShardDoor, private ShardHost {
public:
    static constexpr std::uint32_t kCallsATurn = 64;  // more wait for the next turn

    // All outlive it. `seed` is drawn anew at each start. The process's user is whose daemon it is.
    ShardTenant(worker::Worker& worker, NewsBox& news, Store& store, const ClusterFacts& facts, ShardNumber number,
                std::uint64_t seed, Instant now);
    ~ShardTenant();
    // The shards of the file system, by their numbers, itself among them; nullptr: one of another process. Called
    // before any of their workers turns; the tenants end after all turns. Errors: the process has no descriptor left.
    Status set_peers(const std::vector<ShardTenant*>& peers);
    // By which shards of other processes are reached. It lives on the same worker, came before, and outlives the
    // tenant. Called before the first turn.
    void set_network(PeerNetwork& network) {
        network_ = &network;
        network.serve(*this);
    }

    // ShardDoor: any thread.
    void open_channel(ChannelOrder order) override;
    void drain(std::uint64_t client) override;
    void forget(std::uint64_t client) override;
    // Ends the worker's sleep. Any thread.
    void wake();

    // Tenant: the worker's thread.
    bool on_turn(Instant now) noexcept override;
    [[nodiscard]] Instant next_deadline() const noexcept override;
    // From now on no call is taken: those that were are answered in the turns to come.
    void stop_taking() noexcept { takes_ = false; }
    [[nodiscard]] bool is_unanswered() const noexcept {
        return unanswered_ != 0 || (network_ != nullptr && network_->is_unanswered());
    }
    // Before the end, when the worker turns no more. Errors: see Shard::settle().
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
    std::vector<bool> is_near_;                       // by shard: it is of this process
    PeerNetwork* network_ = nullptr;                  // none: all shards are of this process
    std::vector<std::unique_ptr<Channel>> channels_;  // by their places; a place may be free
    std::vector<std::uint64_t> draining_;             // clients
    std::vector<std::uint64_t> forgetting_;
    std::size_t first_ = 0;  // the place that is looked at first
    std::uint32_t generation_ = 0;
    std::uint32_t unanswered_ = 0;
    bool takes_ = true;
    bool more_ = false;  // the shard has more to do at once
    ShardCounters published_{};
    telemetry::CounterSet<TenantCounter> counters_;
    const telemetry::Registration registration_;  // of the counters, at the worker
    worker::Tenancy tenancy_;
};

}  // namespace cairn::fs
