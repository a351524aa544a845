// Daemon: the parts of cairn-fsd. Its user gives ports to its shards, and threads to both.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/fsd/options.hpp"
#include "apps/fsd/shard_task.hpp"
#include "fs/daemon/meeting_place.hpp"
#include "fs/daemon/sessions.hpp"
#include "lib/telemetry/registry.hpp"

namespace cairn::fsd {

class Daemon {
public:
    // Takes the meeting place, then opens the stores: of two daemons, the second one touches none.
    static Result<std::unique_ptr<Daemon>> open(const Options& options);
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;
    ~Daemon();

    // Adds the next shard. The port's own parts outlive the daemon. Errors: the process has no descriptor left.
    Status add_shard(std::unique_ptr<port::Port> port, Duration longest_wait, Instant now);
    [[nodiscard]] std::vector<worker::Task*> tasks() const;
    // Prints what is served, and serves clients until `stop_fd` is readable, on a thread that runs none of the tasks.
    // All shards are there.
    void serve_clients(int stop_fd);
    // Ends all sleeps of the tasks. Any thread may call it.
    void wake();
    // Ends the daemon. No task runs any more. Errors: stored data are not durable.
    Status finish(Instant now);

private:
    Daemon(const Options& options, fs::MeetingPlace place, fs::OpenStores stores, std::unique_ptr<fs::NewsBox> news);
    Status connect(ShardTask& task, fs::ShardNumber number);
    void say_hello() const;
    void say_counters(const fs::Sessions& sessions) const;
    // Returns the counters of all workers and of the sessions. Counters of one name are added up.
    [[nodiscard]] telemetry::CounterReading read_counters() const;

    const Options options_;
    fs::MeetingPlace place_;
    fs::OpenStores stores_;
    const fs::ClusterFacts facts_;
    const std::uint64_t life_;
    const std::shared_ptr<connections::Agent> agent_ = connections::Agent::create();
    std::unique_ptr<fs::NewsBox> news_;
    telemetry::Registry counters_;  // of the sessions
    std::vector<std::unique_ptr<ShardTask>> shards_;
};

}  // namespace cairn::fsd
