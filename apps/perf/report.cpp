#include "apps/perf/report.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <span>

#include "apps/perf/client.hpp"

namespace cairn::perf {

namespace {

// Returns the rate; for an unreliable service, that of the messages that arrived.
double rate_mops(const SizeResult& result, bool unreliable) {
    const double arrived =
        unreliable && result.sent != 0 ? static_cast<double>(result.arrived) / static_cast<double>(result.sent) : 1;
    return result.seconds > 0 ? arrived * static_cast<double>(result.operations) / result.seconds / 1e6 : 0;
}

double gbit_s(const SizeResult& result, bool unreliable) {
    return rate_mops(result, unreliable) * 8 * result.message_bytes / 1e3;
}

// Returns the server's rate in a test of both directions.
double back_mops(const SizeResult& result) {
    return result.back_seconds > 0 ? static_cast<double>(result.back_operations) / result.back_seconds / 1e6 : 0;
}

double back_gbit_s(const SizeResult& result) {
    return back_mops(result) * 8 * result.message_bytes / 1e3;
}

std::string json_of(const SizeResult& result, bool unreliable) {
    const telemetry::Histogram& latency = result.latency_ns;
    return fmt::format(
               "\"size_bytes\":{},\"operations\":{},\"seconds\":{:.3f},\"rate_mops\":{:.6f},\"gbit_s\":{:.3f},"
               "\"p50_us\":{:.3f},\"p90_us\":{:.3f},\"p99_us\":{:.3f},\"p999_us\":{:.3f},\"max_us\":{:.3f},"
               "\"retransmits\":{},\"checked\":{},\"unfinished\":{}",
               result.message_bytes, result.operations, result.seconds, rate_mops(result, unreliable),
               gbit_s(result, unreliable), us(latency, 0.5), us(latency, 0.9), us(latency, 0.99), us(latency, 0.999),
               us(latency, 1), result.resent_packets, result.checked, result.unfinished) +
           (result.back_seconds > 0 ? fmt::format(",\"rate_mops_back\":{:.6f},\"gbit_s_back\":{:.3f}",
                                                  back_mops(result), back_gbit_s(result))
                                    : "") +
           (unreliable ? fmt::format(",\"sent\":{},\"arrived\":{}", result.sent, result.arrived) : "");
}

// The columns of perftest.
constexpr const char* kBandwidthHeader = " #bytes    #iterations  BW average[Gb/s]  MsgRate[Mpps]\n";
constexpr const char* kBothWaysHeader =
    " #bytes    #iterations  BW average[Gb/s]  MsgRate[Mpps]  back: BW average[Gb/s]  MsgRate[Mpps]\n";
constexpr const char* kLatencyHeader =
    " #bytes    #iterations  t_min[usec]  t_typical[usec]  t_avg[usec]  99%[usec]  99.9%[usec]  t_max[usec]\n";

std::string bandwidth_row(const SizeResult& result, bool unreliable) {
    return fmt::format(" {:<10}{:<13}{:<18.3f}{:.6f}\n", result.message_bytes, result.operations,
                       gbit_s(result, unreliable), rate_mops(result, unreliable));
}

std::string both_ways_row(const SizeResult& result) {
    return fmt::format(" {:<10}{:<13}{:<18.3f}{:<15.6f}{:<24.3f}{:.6f}\n", result.message_bytes, result.operations,
                       gbit_s(result, false), rate_mops(result, false), back_gbit_s(result), back_mops(result));
}

std::string latency_row(const SizeResult& result) {
    const telemetry::Histogram& latency = result.latency_ns;
    return fmt::format(" {:<10}{:<13}{:<13.2f}{:<17.2f}{:<13.2f}{:<11.2f}{:<13.2f}{:.2f}\n", result.message_bytes,
                       result.operations, us(latency, 0), us(latency, 0.5), latency.mean() / 1e3, us(latency, 0.99),
                       us(latency, 0.999), us(latency, 1));
}

// Returns remarks on results that the table does not show; empty if there are none.
std::string remarks(std::span<const SizeResult> results) {
    SizeResult sum;
    for (const SizeResult& each : results) {
        sum.resent_packets += each.resent_packets;
        sum.checked += each.checked;
        sum.unfinished += each.unfinished;
        sum.sent += each.sent;
        sum.arrived += each.arrived;
    }
    std::string text;
    const auto add = [&text](std::uint64_t count, const char* what) {
        text += count != 0 ? fmt::format(" {}: {}\n", what, count) : "";
    };
    add(sum.resent_packets, "packets sent again");
    add(sum.checked, "operations whose data was verified");
    add(sum.unfinished, "operations that never completed");
    add(sum.sent - sum.arrived, "messages that did not arrive");
    return text;
}

}  // namespace

std::vector<SizeResult> Client::final_results() const {
    std::vector<SizeResult> results = results_;
    if (failed() && size_at_ < results.size()) {
        results[size_at_].unfinished = outstanding_;
    }
    return results;
}

std::string Client::json() const {
    const std::vector<SizeResult> results = final_results();
    std::string sweep;
    for (const SizeResult& result : results) {
        sweep += fmt::format("{}{{{}}}", sweep.empty() ? "" : ",", json_of(result, unreliable()));
    }
    return fmt::format(
        "{{\"transport\":\"{}\",\"op\":\"{}\",\"test\":\"{}\",\"half_round_trip\":{},\"qps\":{},\"depth\":{},"
        "\"path_mtu_bytes\":{},\"idle_connection_bytes\":{},{}{}}}",
        name_of(options().transport), name_of(options().operation), name_of(options().test),
        answers_by_message() || answers_in_memory(), queue_pairs_, depth_, path_mtu_bytes_, verbs::kIdleQpBytes,
        json_of(results.back(), unreliable()), options().all_sizes ? fmt::format(",\"sweep\":[{}]", sweep) : "");
}

std::string Client::table() const {
    const bool latency = options().test == Test::Latency;
    const bool half = answers_by_message() || answers_in_memory();
    std::string text = fmt::format(" {} {} {}: {} queue pairs, {} outstanding, path MTU {}{}\n{}",
                                   name_of(options().operation), name_of(options().test), name_of(options().transport),
                                   queue_pairs_, depth_, path_mtu_bytes_, half ? ", latency of half a round trip" : "",
                                   latency               ? kLatencyHeader
                                   : options().both_ways ? kBothWaysHeader
                                                         : kBandwidthHeader);
    const std::vector<SizeResult> results = final_results();
    for (const SizeResult& result : results) {
        text += latency               ? latency_row(result)
                : options().both_ways ? both_ways_row(result)
                                      : bandwidth_row(result, unreliable());
    }
    return text + remarks(results);
}

ProgressPrinter::ProgressPrinter(std::span<const std::unique_ptr<PerfWorker>> workers)
    : workers_(workers), thread_([this] { run(); }) {}

ProgressPrinter::~ProgressPrinter() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
}

telemetry::CounterSnapshot<PerfCounter> ProgressPrinter::progress() const {
    telemetry::CounterSnapshot<PerfCounter> sum;
    for (const std::unique_ptr<PerfWorker>& worker : workers_) {
        sum += worker->progress().snapshot();
    }
    return sum;
}

void ProgressPrinter::run() {
    using Clock = std::chrono::steady_clock;
    constexpr auto kNap = std::chrono::milliseconds(20);
    auto before = progress();
    auto printed = Clock::now();
    while (!stop_.load(std::memory_order_relaxed)) {
        std::this_thread::sleep_for(kNap);
        const auto now = Clock::now();
        if (now - printed < std::chrono::seconds(1)) {
            continue;
        }
        const double elapsed_us = std::chrono::duration<double, std::micro>(now - printed).count();
        const auto latest = progress();
        const auto since = latest.since(before);
        std::fprintf(stderr, "completed %.3f M/s, received %.3f M/s, %.2f Gbit/s, %llu connections\n",
                     static_cast<double>(since.of(PerfCounter::Completed)) / elapsed_us,
                     static_cast<double>(since.of(PerfCounter::Received)) / elapsed_us,
                     static_cast<double>(since.of(PerfCounter::Bytes)) * 8 / elapsed_us / 1e3,
                     static_cast<unsigned long long>(latest.of(PerfCounter::Connections)));
        before = latest;
        printed = now;
    }
}

}  // namespace cairn::perf
