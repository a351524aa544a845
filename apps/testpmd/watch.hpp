// Statistics lines and the end of a limited run, away from the workers.
#pragma once

#include <atomic>
#include <memory>
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

class Watch {
public:
    // Options and tasks outlive it.
    Watch(const Options& options, const Tasks& tasks, std::size_t ports);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

private:
    void run();

    const Options& options_;
    const Tasks& tasks_;
    std::size_t ports_;
    std::atomic<bool> over_{false};
    std::thread thread_;
};

}  // namespace cairn::testpmd
