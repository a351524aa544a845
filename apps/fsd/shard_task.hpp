// A shard with a worker of its own.
#pragma once

#include <memory>

#include "fs/daemon/shard_tenant.hpp"
#include "lib/worker/loop.hpp"
#include "lib/worker/worker.hpp"

namespace cairn::fsd {

class ShardTask final : public worker::Task {
public:
    // The loop looks at its flag to stop this often at least. Who wakes it when it is to stop, lets it sleep longer.
    struct Place {
        std::uint16_t workers = 1;
        std::uint16_t number = 0;
        Duration longest_wait = kLongestWait;
    };

    // Errors: those of Worker::create().
    static Result<std::unique_ptr<ShardTask>> create(std::unique_ptr<port::Port> port, const Place& place, Instant now);

    // The shard of this store lives here from now on.
    void host(fs::NewsBox& news, fs::Store& store, const fs::ClusterFacts& facts, Instant now);
    [[nodiscard]] fs::ShardTenant& shard() noexcept { return *shard_; }

    [[nodiscard]] bool run_turn(Instant now) noexcept override { return worker_->turn(now); }
    [[nodiscard]] bool finished(Instant) const noexcept override { return false; }  // it serves until it is to stop
    [[nodiscard]] bool can_wait() const noexcept override { return worker_->can_wait(); }
    void wait(Instant now) noexcept override { worker_->wait(now, now + place_.longest_wait); }

private:
    ShardTask(std::unique_ptr<port::Port> port, const Place& place) noexcept : place_(place), port_(std::move(port)) {}

    const Place place_;
    std::unique_ptr<port::Port> port_;
    std::unique_ptr<worker::Worker> worker_;
    std::unique_ptr<fs::ShardTenant> shard_;
};

}  // namespace cairn::fsd
