#include "apps/rpcbench/report.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

namespace cairn::rpcbench {

namespace {

telemetry::CounterSnapshot<BenchCounter> total_progress(Workers workers) {
    telemetry::CounterSnapshot<BenchCounter> sum;
    for (const auto& worker : workers) {
        sum += worker->progress().snapshot();
    }
    return sum;
}

constexpr telemetry::CounterText kNotified{
    "erpc_congestion_notified", "times a flow was cut because switches marked its packets: the network is crowded"};

double us(const telemetry::Histogram& latency_ns, double quantile) {
    return static_cast<double>(latency_ns.percentile(quantile)) / 1e3;
}

}  // namespace

ProgressPrinter::ProgressPrinter(Workers workers) : workers_(workers), thread_([this] { run(); }) {}

ProgressPrinter::~ProgressPrinter() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
}

void ProgressPrinter::run() {
    using Clock = std::chrono::steady_clock;
    constexpr auto kNap = std::chrono::milliseconds(20);
    auto before = total_progress(workers_);
    auto printed = Clock::now();
    while (!stop_.load(std::memory_order_relaxed)) {
        std::this_thread::sleep_for(kNap);
        const auto now = Clock::now();
        if (now - printed < std::chrono::seconds(1)) {
            continue;
        }
        const double elapsed_us = std::chrono::duration<double, std::micro>(now - printed).count();
        const auto progress = total_progress(workers_);
        const auto since = progress.since(before);
        std::fprintf(stderr, "calls %.3f M/s, served %.3f M/s, %llu failed, %llu resent\n",
                     static_cast<double>(since.of(BenchCounter::Completed)) / elapsed_us,
                     static_cast<double>(since.of(BenchCounter::Handled)) / elapsed_us,
                     static_cast<unsigned long long>(progress.of(BenchCounter::Failed)),
                     static_cast<unsigned long long>(progress.of(BenchCounter::Resent)));
        before = progress;
        printed = now;
    }
}

void print_counters(Workers workers) {
    for (std::size_t i = 0; i < workers.size(); ++i) {
        const BenchWorker& worker = *workers[i];
        fmt::print(stderr, "worker {}, {} bytes per idle session:\n{}{}{}{}", i, erpc::kIdleSessionBytes,
                   worker.port().counters_text(), telemetry::text_of(worker.service().drops().snapshot()),
                   telemetry::text_of(worker.endpoint().statistics().drops.snapshot()),
                   telemetry::text_of({&kNotified, 1}, {&worker.endpoint().statistics().congestion_notified, 1}));
    }
}

void print_json(const Options& options, Workers workers) {
    double rate_mops = 0;
    telemetry::Histogram latency_ns;
    std::uint64_t retransmits = 0;
    std::uint64_t handled = 0;
    std::uint64_t failed = 0;
    std::uint64_t notified = 0;
    for (const auto& worker : workers) {
        rate_mops += worker->rate_mops();
        latency_ns.merge(worker->latency_ns());
        retransmits += worker->endpoint().statistics().retransmits;
        handled += worker->endpoint().statistics().requests_handled;
        failed += worker->calls_failed();
        notified += worker->endpoint().statistics().congestion_notified;
    }
    fmt::print(
        "{{\"system\":\"{}\",\"rate_mops\":{:.6f},\"gbit_s\":{:.2f},\"p50_us\":{:.3f},\"p99_us\":{:.3f},\"p999_us\":{:."
        "3f},"
        "\"retransmits\":{},\"failed\":{},\"congestion_notified\":{},\"requests_handled\":{},\"workers\":{}}}\n",
        options.system, rate_mops, rate_mops * (options.request_bytes + options.response_bytes) * 8 / 1e3,
        us(latency_ns, 0.5), us(latency_ns, 0.99), us(latency_ns, 0.999), retransmits, failed, notified, handled,
        workers.size());
}

}  // namespace cairn::rpcbench
