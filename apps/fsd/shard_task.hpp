// A shard with a worker of its own.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "fs/daemon/shard_tenant.hpp"
#include "lib/mem/region.hpp"
#include "lib/worker/loop.hpp"
#include "lib/worker/worker.hpp"

namespace cairn::fsd {

class ShardTask final : public worker::Task {
public:
    // The loop looks at its flag to stop at least this often. If the daemon wakes it for that, it may sleep longer.
    struct Place {
        std::uint16_t workers = 1;
        std::uint16_t number = 0;
        Duration longest_wait = kLongestWait;
        bool has_peers = false;  // in other processes
    };

    // Makes the task. Errors: those of Worker::create().
    static Result<std::unique_ptr<ShardTask>> create(std::unique_ptr<port::Port> port, const Place& place, Instant now);

    // Connects it with other processes, which have shards of the file system, too. Called before host(). Errors: those
    // of PeerNetwork::create().
    Status connect(std::shared_ptr<connections::Agent> agent, fs::PeerLinkConfig links, std::uint32_t path_mtu_bytes);
    // Makes the shard of this store live here from now on. `number` is the shard's own in the file system.
    void host(fs::NewsBox& news, fs::Store& store, const fs::ClusterFacts& facts, fs::ShardNumber number, Instant now);
    [[nodiscard]] fs::ShardTenant& shard() noexcept { return *shard_; }
    // Returns the counters of the worker, and of all parts on it.
    [[nodiscard]] const telemetry::Registry& counters() const noexcept { return std::as_const(*worker_).counters(); }
    // Returns the network; nullptr if the shard has no peers in other processes.
    [[nodiscard]] fs::PeerNetwork* network() noexcept { return network_.get(); }

    [[nodiscard]] bool run_turn(Instant now) noexcept override { return worker_->turn(now); }
    [[nodiscard]] bool finished(Instant) const noexcept override { return false; }  // it serves until it is to stop
    [[nodiscard]] bool can_wait() const noexcept override { return worker_->can_wait(); }
    void wait(Instant now) noexcept override { worker_->wait(now, now + place_.longest_wait); }

private:
    ShardTask(std::unique_ptr<port::Port> port, const Place& place) noexcept : place_(place), port_(std::move(port)) {}

    const Place place_;
    std::unique_ptr<port::Port> port_;
    std::unique_ptr<worker::Worker> worker_;
    std::optional<mem::Region> memory_;  // of the network
    std::unique_ptr<fs::PeerNetwork> network_;
    std::unique_ptr<fs::ShardTenant> shard_;
};

}  // namespace cairn::fsd
