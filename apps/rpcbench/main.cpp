// cairn-rpcbench: EAL arguments -- own arguments; parse, build, run.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "apps/common/app.hpp"
#include "apps/common/ports.hpp"
#include "apps/rpcbench/bench_worker.hpp"
#include "apps/rpcbench/report.hpp"
#include "lib/base/secret.hpp"
#include "lib/port/qpn_owners.hpp"
#include "pmd_glue/heap_block.hpp"
#include "pmd_glue/lcores.hpp"

namespace {

using namespace cairn;

// Allocates the messages of one worker. It has both directions of a full window, and more room, since a server does not
// know its clients' options. The requests of one host may take half of the memory: two of 8 MB, if EAL has enough.
Result<pmd::HeapBlock> allocate_memory(const rpcbench::Options& options) {
    constexpr std::size_t kRoomBytes = std::size_t{32} << 20U;
    const std::size_t longest_bytes = std::size_t{options.request_bytes} + options.response_bytes;
    const std::size_t window_bytes =
        std::bit_ceil(longest_bytes) * 2 * (std::size_t{options.window} + 1) + rpcbench::session_memory(options);
    if (options.server && pmd::worker_count() == 1) {
        Result<pmd::HeapBlock> memory = pmd::HeapBlock::allocate(window_bytes + 2 * kRoomBytes, "messages");
        if (memory.ok()) {
            return memory;
        }
    }
    return pmd::HeapBlock::allocate(window_bytes + kRoomBytes, "messages");
}

using Benches = std::vector<std::unique_ptr<rpcbench::BenchWorker>>;

Result<Benches> make_benches(const rpcbench::Options& options, app::Ports& ports, const pmd::Clock& clock,
                             rpcbench::Crew& crew) {
    std::optional<net::IpAddress> peer;
    if (!options.peer.empty()) {
        const Result<net::IpAddress> parsed = ports.peer(options.peer);
        if (!parsed.ok()) {
            return parsed.error();
        }
        peer = parsed.value();
    }
    Benches benches;
    for (std::uint16_t i = 0; i < pmd::worker_count(); ++i) {
        Result<pmd::HeapBlock> memory = allocate_memory(options);
        if (!memory.ok()) {
            return memory.error();
        }
        auto port = ports.make_port(i);
        if (!port.ok()) {
            return port.error();
        }
        benches.push_back(std::make_unique<rpcbench::BenchWorker>(options, std::move(port).value(), i,
                                                                  std::move(memory).value(), crew));
        const Status prepared = benches.back()->prepare(peer, draw_secret(), clock.now());
        if (!prepared.ok()) {
            return prepared.error();
        }
    }
    return benches;
}

// Checks the service's number. Packets find their worker by the low bits of the queue pair's number.
Status check_service_number(const rpcbench::Options& options) {
    const std::uint32_t step = port::QpnOwners(pmd::worker_count()).step();
    if (options.erpc.qpn % step != 0) {
        return Error{fmt::format("--qpn {:#x} is no multiple of {}, and there are {} lcores", options.erpc.qpn, step,
                                 pmd::worker_count()),
                     fmt::format("give --qpn {:#x}", options.erpc.qpn / step * step + step)};
    }
    return Nothing{};
}

Result<int> run_bench(const rpcbench::Options& options) {
    const Status number = check_service_number(options);
    if (!number.ok()) {
        return number.error();
    }
    app::PortOptions wanted = options.ports;
    wanted.workers = pmd::worker_count();
    auto opened = app::Ports::open(wanted);
    if (!opened.ok()) {
        return opened.error();
    }
    app::Ports& ports = opened.value();
    const pmd::Clock clock;
    rpcbench::Crew crew;
    const auto made = make_benches(options, ports, clock, crew);
    if (!made.ok()) {
        return made.error();
    }
    const Benches& benches = made.value();
    std::vector<worker::Task*> tasks;
    for (const auto& bench : benches) {
        tasks.push_back(bench.get());
    }
    const Status captured = ports.start_capture();
    if (!captured.ok()) {
        return captured.error();
    }
    telemetry::CounterSnapshot<pmd::ClockCounter> clocks;
    {
        const rpcbench::ProgressPrinter printer(benches);
        clocks = pmd::run_workers(tasks, clock, options.spin ? worker::Polling::Spin : worker::Polling::Adaptive);
    }
    ports.stop_capture();
    rpcbench::print_counters(benches);
    fmt::print(stderr, "{}", telemetry::text_of(clocks));
    (options.json ? rpcbench::print_json : rpcbench::print_table)(options, benches);
    const bool failed = std::any_of(benches.begin(), benches.end(), [](const auto& bench) { return bench->failed(); });
    return failed ? 1 : 0;
}

Result<int> run(int argc, char** argv, int first) {
    const Result<rpcbench::Options> options = rpcbench::parse_options(argc, argv, first);
    return options.ok() ? run_bench(options.value()) : Result<int>(options.error());
}

}  // namespace

int main(int argc, char** argv) {
    return app::run("cairn-rpcbench", argc, argv, run);
}
