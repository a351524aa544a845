// cairn-perf: EAL arguments -- own arguments; parse, build, run.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "apps/common/app.hpp"
#include "apps/common/ports.hpp"
#include "apps/perf/client.hpp"
#include "apps/perf/report.hpp"
#include "apps/perf/rping.hpp"
#include "apps/perf/server.hpp"
#include "lib/base/secret.hpp"
#include "pmd_glue/lcores.hpp"

namespace {

using namespace cairn;

using Workers = std::vector<std::unique_ptr<perf::PerfWorker>>;

template <class Server>
Result<std::unique_ptr<perf::PerfWorker>> make_server(const perf::Options& options, const perf::Seat& seat,
                                                      std::unique_ptr<port::Port> port, Instant now) {
    auto server = std::make_unique<Server>(options, seat, std::move(port));
    const Status opened = server->open_device(draw_secret(), now);
    const Status ready = opened.ok() ? server->prepare() : opened;
    if (!ready.ok()) {
        return ready.error();
    }
    return std::unique_ptr<perf::PerfWorker>(std::move(server));
}

template <class Client>
Result<std::unique_ptr<perf::PerfWorker>> make_client(const perf::Options& options, const perf::Seat& seat,
                                                      std::unique_ptr<port::Port> port, const net::IpAddress& peer,
                                                      Instant now) {
    auto client = std::make_unique<Client>(options, seat, std::move(port), peer);
    const Status opened = client->open_device(draw_secret(), now);
    const Status ready = opened.ok() ? client->prepare(now) : opened;
    if (!ready.ok()) {
        return ready.error();
    }
    return std::unique_ptr<perf::PerfWorker>(std::move(client));
}

Result<std::unique_ptr<perf::PerfWorker>> make_worker(const perf::Options& options, const perf::Seat& seat,
                                                      const app::Ports& ports, std::unique_ptr<port::Port> port,
                                                      Instant now) {
    if (options.server) {
        return options.rping ? make_server<perf::RpingServer>(options, seat, std::move(port), now)
                             : make_server<perf::Server>(options, seat, std::move(port), now);
    }
    const Result<net::IpAddress> peer = ports.peer(options.peer);
    if (!peer.ok()) {
        return peer.error();
    }
    return options.rping ? make_client<perf::RpingClient>(options, seat, std::move(port), peer.value(), now)
                         : make_client<perf::Client>(options, seat, std::move(port), peer.value(), now);
}

// Refuses tests that only one worker can do, and resources that are too scarce for all of them.
Status judge_lcores(perf::Options& options, std::uint32_t lcores) {
    if (lcores == 1) {
        return Nothing{};
    }
    if (options.rping || (!options.server && options.test == perf::Test::Latency)) {
        return Error{
            fmt::format("{} has one worker, and there are {} lcores", options.rping ? "--rping" : "--test lat", lcores),
            "give one lcore: -l 0"};
    }
    options.queue_pairs = options.queue_pairs_given ? options.queue_pairs : lcores;
    if (!options.server && options.queue_pairs < lcores) {
        return Error{fmt::format("{} queue pairs are too few for {} lcores", options.queue_pairs, lcores),
                     fmt::format("give --qps {} or more, or fewer lcores", lcores)};
    }
    const bool counted = !options.server && options.iterations != 0;
    if (counted && options.iterations < lcores) {
        return Error{fmt::format("{} iterations are too few for {} lcores", options.iterations, lcores),
                     fmt::format("give --iterations {} or more, or fewer lcores", lcores)};
    }
    return Nothing{};
}

perf::Options part_of(const perf::Options& options, const perf::Seat& seat) {
    perf::Options part = options;
    part.queue_pairs = seat.part_of(options.queue_pairs);
    part.depth = options.depth == 0 ? 0 : std::max(1U, seat.part_of(options.depth));
    const std::uint64_t workers = seat.crew.workers;
    part.iterations = options.iterations / workers + (seat.number < options.iterations % workers ? 1 : 0);
    return part;
}

Result<Workers> make_workers(const perf::Options& options, app::Ports& ports, perf::Crew& crew, Instant now) {
    Workers workers;
    for (std::uint32_t i = 0; i < crew.workers; ++i) {
        const perf::Seat seat{crew, i};
        auto port = ports.make_port(static_cast<std::uint16_t>(i));
        if (!port.ok()) {
            return port.error();
        }
        auto made = make_worker(part_of(options, seat), seat, ports, std::move(port).value(), now);
        if (!made.ok()) {
            return made.error();
        }
        workers.push_back(std::move(made).value());
    }
    return workers;
}

// Prints the result. The first worker has the sum of all results in the end.
int report(const perf::Options& options, const Workers& workers,
           const telemetry::CounterSnapshot<pmd::ClockCounter>& clocks) {
    fmt::print(stderr, "{} bytes per idle connection beside its queues:\n", verbs::kIdleQpBytes);
    bool failed = false;
    for (const auto& worker : workers) {
        fmt::print(stderr, "{}", std::as_const(*worker).worker().counters().text());
        failed = failed || worker->failed();
        if (worker != workers.front()) {
            workers.front()->absorb(*worker);
        }
    }
    fmt::print(stderr, "{}", telemetry::text_of(clocks));
    fmt::print("{}", options.json ? workers.front()->json() + '\n' : workers.front()->table());
    return failed ? 1 : 0;
}

Result<int> run_perf(perf::Options options) {
    options.ports.workers = pmd::worker_count();
    const Status judged = judge_lcores(options, pmd::worker_count());
    if (!judged.ok()) {
        return judged.error();
    }
    auto opened = app::Ports::open(options.ports);
    if (!opened.ok()) {
        return opened.error();
    }
    app::Ports& ports = opened.value();
    const pmd::Clock clock;
    perf::Crew crew(pmd::worker_count(), draw_secret());
    const auto made = make_workers(options, ports, crew, clock.now());
    if (!made.ok()) {
        return made.error();
    }
    const Workers& workers = made.value();
    const Status captured = ports.start_capture();
    if (!captured.ok()) {
        return captured.error();
    }
    std::vector<worker::Task*> tasks;
    for (const auto& worker : workers) {
        tasks.push_back(worker.get());
    }
    telemetry::CounterSnapshot<pmd::ClockCounter> clocks;
    {
        const perf::ProgressPrinter printer(workers);
        clocks = pmd::run_workers(tasks, clock, options.spin ? worker::Polling::Spin : worker::Polling::Adaptive);
    }
    ports.stop_capture();
    return report(options, workers, clocks);
}

Result<int> run(int argc, char** argv, int first) {
    const Result<perf::Options> options = perf::parse_options(argc, argv, first);
    return options.ok() ? run_perf(options.value()) : Result<int>(options.error());
}

}  // namespace

int main(int argc, char** argv) {
    return app::run("cairn-perf", argc, argv, run);
}
