#include "apps/sim/incast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "apps/sim/swarm.hpp"
#include "tests/sim/incast_world.hpp"

namespace cairn::simulate {

namespace {

using erpc::CongestionAlgorithm;

// "21.8 / 39": goodput and median round trip; the paper gives no goodput without control, and DCQCN not at all.
std::string paper_text(std::size_t clients, CongestionAlgorithm algorithm) {
    const auto* const found = std::find_if(sim::kIncastPaper.begin(), sim::kIncastPaper.end(),
                                           [clients](const sim::IncastPaper& each) { return each.clients == clients; });
    if (found == sim::kIncastPaper.end() || algorithm == CongestionAlgorithm::Dcqcn) {
        return "-";
    }
    return algorithm == CongestionAlgorithm::None
               ? fmt::format("- / {:.0f}", found->rtt_without_us)
               : fmt::format("{:.1f} / {:.0f}", found->goodput_gbit_s, found->rtt_us);
}

double microseconds_of(Duration span) {
    return static_cast<double>(span.ns) / 1e3;
}

std::string line_of(const sim::IncastPlan& plan, const sim::IncastResult& result) {
    return fmt::format("{:>7} {:>7} {:>5} {:>8.2f} {:>5.1f} {:>8.1f} {:>8.1f} {:>7.3f} {:>8} {:>8} {:>8.2f} {:>12}",
                       plan.clients, sim::text_of(plan.algorithm), plan.path_mtu_bytes, result.goodput_bits_per_s / 1e9,
                       result.goodput_of_link * 100, microseconds_of(result.rtt_p50), microseconds_of(result.rtt_p99),
                       result.fairness, result.retransmits, result.dropped,
                       static_cast<double>(result.queue_most_bytes) / 1e6, paper_text(plan.clients, plan.algorithm));
}

std::string json_of(const sim::IncastPlan& plan, const sim::IncastResult& result, double real_s) {
    return fmt::format(
        R"({{"clients":{},"cc":"{}","path_mtu":{},"gbit_s":{:.3f},"of_link":{:.4f},"rtt_p50_us":{:.2f},)"
        R"("rtt_p99_us":{:.2f},"fairness":{:.4f},"retransmits":{},"dropped":{},"marked":{},"queue_most_bytes":{},)"
        R"("calls":{},"real_s":{:.2f}}})",
        plan.clients, sim::text_of(plan.algorithm), plan.path_mtu_bytes, result.goodput_bits_per_s / 1e9,
        result.goodput_of_link, microseconds_of(result.rtt_p50), microseconds_of(result.rtt_p99), result.fairness,
        result.retransmits, result.dropped, result.marked, result.queue_most_bytes, result.calls, real_s);
}

}  // namespace

void run_incasts(const Options& options) {
    std::FILE* const table = options.json ? stderr : stdout;
    fmt::print(table, "{:>7} {:>7} {:>5} {:>8} {:>5} {:>8} {:>8} {:>7} {:>8} {:>8} {:>8} {:>12}\n", "clients", "cc",
               "mtu", "Gbit/s", "% link", "p50 us", "p99 us", "shares", "resent", "dropped", "queue MB", "paper");
    std::string objects;
    for (const std::size_t clients : options.incast) {
        for (const CongestionAlgorithm algorithm : options.algorithms) {
            if (stop_requested()) {
                break;
            }
            sim::IncastPlan plan;
            plan.clients = clients;
            plan.algorithm = algorithm;
            plan.path_mtu_bytes = options.path_mtu_bytes;
            plan.seed = options.first;
            const auto begun = std::chrono::steady_clock::now();
            const sim::IncastResult result = sim::IncastWorld(plan).run();
            const double real_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
            fmt::print(table, "{}\n", line_of(plan, result));
            std::fflush(table);
            objects += fmt::format("{}{}", objects.empty() ? "" : ",", json_of(plan, result, real_s));
        }
    }
    if (options.json) {
        fmt::print("{{\"incast\":[{}]}}\n", objects);
    }
}

}  // namespace cairn::simulate
