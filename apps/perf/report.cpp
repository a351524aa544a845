#include "apps/perf/report.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "apps/perf/client.hpp"

namespace cairn::perf {

namespace {

double us(const telemetry::Histogram& latency_ns, double quantile) {
    return static_cast<double>(latency_ns.percentile(quantile)) / 1e3;
}

// By an unreliable service, the rate of what arrived.
std::string json_of(const SizeResult& result, bool unreliable) {
    const double arrived =
        unreliable && result.sent != 0 ? static_cast<double>(result.arrived) / static_cast<double>(result.sent) : 1;
    const double rate_mops =
        result.seconds > 0 ? arrived * static_cast<double>(result.operations) / result.seconds / 1e6 : 0;
    return fmt::format(
               "\"size_bytes\":{},\"operations\":{},\"seconds\":{:.3f},\"rate_mops\":{:.6f},\"gbit_s\":{:.3f},\"p50_"
               "us\":{:."
               "3f},"
               "\"p90_us\":{:.3f},\"p99_us\":{:.3f},\"p999_us\":{:.3f},\"max_us\":{:.3f},\"retransmits\":{},"
               "\"checked\":{}",
               result.message_bytes, result.operations, result.seconds, rate_mops,
               rate_mops * 8 * result.message_bytes / 1e3, us(result.latency_ns, 0.5), us(result.latency_ns, 0.9),
               us(result.latency_ns, 0.99), us(result.latency_ns, 0.999), us(result.latency_ns, 1),
               result.resent_packets, result.checked) +
           (unreliable ? fmt::format(",\"sent\":{},\"arrived\":{}", result.sent, result.arrived) : "");
}

}  // namespace

std::string Client::json() const {
    std::string sweep;
    for (const SizeResult& result : results_) {
        sweep += fmt::format("{}{{{}}}", sweep.empty() ? "" : ",", json_of(result, unreliable()));
    }
    return fmt::format(
        "{{\"transport\":\"{}\",\"op\":\"{}\",\"test\":\"{}\",\"half_round_trip\":{},\"qps\":{},\"depth\":{},"
        "\"path_mtu_bytes\":{},\"idle_connection_bytes\":{},{}{}}}",
        name_of(options().transport), name_of(options().operation), name_of(options().test),
        answers_by_message() || answers_in_memory(), options().queue_pairs, options().depth, options().path_mtu_bytes,
        verbs::kIdleQpBytes, json_of(results_.back(), unreliable()),
        options().all_sizes ? fmt::format(",\"sweep\":[{}]", sweep) : "");
}

ProgressPrinter::ProgressPrinter(const PerfWorker& worker) : worker_(worker), thread_([this] { run(); }) {}

ProgressPrinter::~ProgressPrinter() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
}

void ProgressPrinter::run() {
    using Clock = std::chrono::steady_clock;
    constexpr auto kNap = std::chrono::milliseconds(20);
    auto before = worker_.progress().snapshot();
    auto printed = Clock::now();
    while (!stop_.load(std::memory_order_relaxed)) {
        std::this_thread::sleep_for(kNap);
        const auto now = Clock::now();
        if (now - printed < std::chrono::seconds(1)) {
            continue;
        }
        const double elapsed_us = std::chrono::duration<double, std::micro>(now - printed).count();
        const auto progress = worker_.progress().snapshot();
        const auto since = progress.since(before);
        std::fprintf(stderr, "completed %.3f M/s, received %.3f M/s, %.2f Gbit/s, %llu connections\n",
                     static_cast<double>(since.of(PerfCounter::Completed)) / elapsed_us,
                     static_cast<double>(since.of(PerfCounter::Received)) / elapsed_us,
                     static_cast<double>(since.of(PerfCounter::Bytes)) * 8 / elapsed_us / 1e3,
                     static_cast<unsigned long long>(progress.of(PerfCounter::Connections)));
        before = progress;
        printed = now;
    }
}

}  // namespace cairn::perf
