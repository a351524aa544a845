#include "apps/sim/sync.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "apps/sim/report.hpp"
#include "apps/sim/swarm.hpp"
#include "rpc/sim/sync_world.hpp"

namespace cairn::simulate {

namespace {

double batches_per_s(const sim::SyncPlan& plan, const sim::SyncResult& result) {
    return static_cast<double>(result.batches) * 1e9 / static_cast<double>(plan.measured.ns);
}

std::string json_of(const sim::SyncPlan& plan, const sim::SyncResult& result) {
    return fmt::format(
        R"({{"how":"{}","servers":{},"clients":{},"cohorts":{},"slice_us":{:.0f},"drift_ppm_most":{},)"
        R"("stall_fraction":{:.4f},"batches_per_s":{:.0f},"failed":{},"switches":{},"apart_p50_us":{:.2f},)"
        R"("apart_most_us":{:.2f}}})",
        sim::text_of(plan.how), plan.servers, plan.clients, plan.cohorts, microseconds_of(plan.slice),
        plan.drift_ppm_most, result.stall_fraction, batches_per_s(plan, result), result.failed, result.switches,
        microseconds_of(result.apart_p50), microseconds_of(result.apart_most));
}

}  // namespace

void run_sync(const Options& options) {
    std::FILE* const table = options.json ? stderr : stdout;
    fmt::print(table, "{:>6} {:>8} {:>12} {:>9} {:>9} {:>10} {:>11}\n", "sync", "% stall", "batches/s", "switches",
               "failed", "apart us", "at most us");
    std::string objects;
    for (const auto how : {sim::Synchronisation::None, sim::Synchronisation::Apart, sim::Synchronisation::Full}) {
        if (stop_requested()) {
            break;
        }
        sim::SyncPlan plan;
        plan.how = how;
        plan.seed = options.first;
        const sim::SyncResult result = std::make_unique<sim::SyncWorld>(plan)->run();
        fmt::print(table, "{:>6} {:>8.1f} {:>12.0f} {:>9} {:>9} {:>10.2f} {:>11.2f}\n", sim::text_of(how),
                   result.stall_fraction * 100, batches_per_s(plan, result), result.switches, result.failed,
                   microseconds_of(result.apart_p50), microseconds_of(result.apart_most));
        std::fflush(table);
        objects += fmt::format("{}{}", objects.empty() ? "" : ",", json_of(plan, result));
    }
    if (options.json) {
        fmt::print("{{\"sync\":[{}]}}\n", objects);
    }
}

}  // namespace cairn::simulate
