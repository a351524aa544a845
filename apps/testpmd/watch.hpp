// Statistics lines and the end of a limited run, away from the workers; and what is told of it all in the end.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "apps/testpmd/options.hpp"
#include "pmd_glue/forward_mode.hpp"

namespace cairn::testpmd {

using Tasks = std::vector<std::unique_ptr<pmd::ForwardTask>>;
using Snapshot = telemetry::CounterSnapshot<pmd::ForwardCounter>;

// What all workers counted at one port, and at all `ports` of them.
[[nodiscard]] Snapshot counts_of(const Tasks& tasks, std::size_t port);
[[nodiscard]] Snapshot total_of(const Tasks& tasks, std::size_t ports);

// What a run gave in so many seconds, in all and of each port: as one JSON object, or as a table.
[[nodiscard]] std::string json_of_run(const Tasks& tasks, const std::vector<std::string>& ports, double seconds);
[[nodiscard]] std::string table_of_run(const Tasks& tasks, const std::vector<std::string>& ports, double seconds);

class Watch {
public:
    // All outlive it.
    Watch(const Options& options, const Tasks& tasks, const std::vector<std::string>& ports);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

private:
    void run();
    void print_period(std::vector<Snapshot>& before, double seconds) const;

    const Options& options_;
    const Tasks& tasks_;
    const std::vector<std::string>& ports_;
    std::atomic<bool> over_{false};
    std::thread thread_;
};

}  // namespace cairn::testpmd
