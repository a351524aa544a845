// The progress output of cairn-perf.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <thread>

#include "apps/perf/perf_worker.hpp"

namespace cairn::perf {

// Prints a line each second, on a thread of its own, so that workers do not wait for a terminal.
class ProgressPrinter {
public:
    explicit ProgressPrinter(std::span<const std::unique_ptr<PerfWorker>> workers);
    ~ProgressPrinter();
    ProgressPrinter(const ProgressPrinter&) = delete;
    ProgressPrinter& operator=(const ProgressPrinter&) = delete;

private:
    [[nodiscard]] telemetry::CounterSnapshot<PerfCounter> progress() const;
    void run();
    const std::span<const std::unique_ptr<PerfWorker>> workers_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

}  // namespace cairn::perf
