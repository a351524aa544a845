#include "apps/sim/incast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "apps/sim/report.hpp"
#include "apps/sim/swarm.hpp"
#include "lib/sim/rc/rc_incast_world.hpp"
#include "rpc/sim/incast_world.hpp"

namespace cairn::simulate {

namespace {

using erpc::CongestionAlgorithm;

// Returns a text such as "21.8 / 39": goodput and median round trip. The paper gives no goodput without control, and no
// figures of DCQCN.
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

// One experiment and its result.
struct Incast {
    std::size_t clients = 0;
    std::string_view control;
    std::uint16_t path_mtu_bytes = 0;
    std::string paper = "-";
    sim::IncastResult result;
    double real_s = 0;
};

std::string line_of(const Incast& it) {
    const sim::IncastResult& result = it.result;
    return fmt::format("{:>7} {:>7} {:>5} {:>8.2f} {:>5.1f} {:>8.1f} {:>8.1f} {:>7.3f} {:>8} {:>8} {:>8.2f} {:>12}",
                       it.clients, it.control, it.path_mtu_bytes, result.goodput_bits_per_s / 1e9,
                       result.goodput_of_link * 100, microseconds_of(result.rtt_p50), microseconds_of(result.rtt_p99),
                       result.fairness, result.retransmits, result.dropped,
                       static_cast<double>(result.queue_most_bytes) / 1e6, it.paper);
}

std::string json_of(const Incast& it) {
    const sim::IncastResult& result = it.result;
    return fmt::format(
        R"({{"clients":{},"cc":"{}","path_mtu":{},"gbit_s":{:.3f},"of_link":{:.4f},"rtt_p50_us":{:.2f},)"
        R"("rtt_p99_us":{:.2f},"fairness":{:.4f},"retransmits":{},"dropped":{},"marked":{},"queue_most_bytes":{},)"
        R"("calls":{},"real_s":{:.2f}}})",
        it.clients, it.control, it.path_mtu_bytes, result.goodput_bits_per_s / 1e9, result.goodput_of_link,
        microseconds_of(result.rtt_p50), microseconds_of(result.rtt_p99), result.fairness, result.retransmits,
        result.dropped, result.marked, result.queue_most_bytes, result.calls, it.real_s);
}

// Runs an experiment in either world.
template <class World, class Plan>
Incast live_through(Plan plan, std::size_t clients, const Options& options) {
    plan.clients = clients;
    plan.path_mtu_bytes = options.path_mtu_bytes;
    plan.seed = options.first;
    const auto begun = std::chrono::steady_clock::now();
    const auto world = std::make_unique<World>(plan);
    Incast it;
    it.result = world->run();
    it.clients = clients;
    it.path_mtu_bytes = plan.path_mtu_bytes;
    it.real_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    return it;
}

Incast run_incast(std::size_t clients, CongestionAlgorithm algorithm, const Options& options) {
    Incast it;
    if (options.world == WorldKind::Rc) {
        sim::RcIncastPlan plan;
        const bool controlled = algorithm != CongestionAlgorithm::None;
        plan.control = controlled ? roce::ConnectionControl::Dcqcn : roce::ConnectionControl::None;
        it = live_through<sim::RcIncastWorld>(plan, clients, options);
    } else {
        sim::IncastPlan plan;
        plan.algorithm = algorithm;
        it = live_through<sim::IncastWorld>(plan, clients, options);
        it.paper = paper_text(clients, algorithm);
    }
    it.control = sim::text_of(algorithm);
    return it;
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
            const Incast it = run_incast(clients, algorithm, options);
            fmt::print(table, "{}\n", line_of(it));
            std::fflush(table);
            objects += fmt::format("{}{}", objects.empty() ? "" : ",", json_of(it));
        }
    }
    if (options.json) {
        fmt::print("{{\"incast\":[{}]}}\n", objects);
    }
}

}  // namespace cairn::simulate
