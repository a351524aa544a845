// What cairn-perf prints while it runs.
#pragma once

#include <atomic>
#include <thread>

#include "apps/perf/perf_worker.hpp"

namespace cairn::perf {

// A line each second from a thread of its own, so that the worker does not wait for a terminal.
class ProgressPrinter {
public:
    explicit ProgressPrinter(const PerfWorker& worker);
    ~ProgressPrinter();
    ProgressPrinter(const ProgressPrinter&) = delete;
    ProgressPrinter& operator=(const ProgressPrinter&) = delete;

private:
    void run();
    const PerfWorker& worker_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

}  // namespace cairn::perf
