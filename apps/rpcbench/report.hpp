// The output of cairn-rpcbench: a progress line each second, drops with their meaning, the result.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <thread>

#include "apps/rpcbench/bench_worker.hpp"

namespace cairn::rpcbench {

using Workers = std::span<const std::unique_ptr<BenchWorker>>;

// Prints on a thread of its own, so that workers do not wait for a terminal.
class ProgressPrinter {
public:
    explicit ProgressPrinter(Workers workers);
    ~ProgressPrinter();
    ProgressPrinter(const ProgressPrinter&) = delete;
    ProgressPrinter& operator=(const ProgressPrinter&) = delete;

private:
    void run();
    Workers workers_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

// Prints the counters that are not zero on stderr. Called after the workers have stopped.
void print_counters(Workers workers);
// Print the result on stdout, as a table or as one JSON object, which is the last line.
void print_table(const Options& options, Workers workers);
void print_json(const Options& options, Workers workers);

}  // namespace cairn::rpcbench
