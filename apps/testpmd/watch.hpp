// Statistics lines, the end of a limited run, and the final report, all away from the workers.
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

// Return the counts of all workers at one port, and at all `ports` ports.
[[nodiscard]] Snapshot counts_of(const Tasks& tasks, std::size_t port);
[[nodiscard]] Snapshot total_of(const Tasks& tasks, std::size_t ports);

// Return the result of a run of `seconds`, in total and for each port: as one JSON object, or as a table.
[[nodiscard]] std::string json_of_run(const Tasks& tasks, const std::vector<std::string>& ports, double seconds);
[[nodiscard]] std::string table_of_run(const Tasks& tasks, const std::vector<std::string>& ports, double seconds);

class Watch {
public:
    // Keeps the arguments, which outlive the object.
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
