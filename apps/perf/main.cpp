// cairn-perf: EAL arguments -- own arguments; parse, build, run.
#include <fmt/format.h>

#include <array>

#include "apps/common/app.hpp"
#include "apps/common/carrier.hpp"
#include "apps/perf/client.hpp"
#include "apps/perf/report.hpp"
#include "apps/perf/rping.hpp"
#include "apps/perf/server.hpp"
#include "lib/base/secret.hpp"
#include "pmd_glue/lcores.hpp"

namespace {

using namespace cairn;

template <class Server>
Result<std::unique_ptr<perf::PerfWorker>> make_server(const perf::Options& options, std::unique_ptr<port::Port> port,
                                                      Instant now) {
    auto server = std::make_unique<Server>(options, std::move(port));
    const Status opened = server->open_device(draw_secret(), now);
    const Status ready = opened.ok() ? server->prepare() : opened;
    if (!ready.ok()) {
        return ready.error();
    }
    return std::unique_ptr<perf::PerfWorker>(std::move(server));
}

template <class Client>
Result<std::unique_ptr<perf::PerfWorker>> make_client(const perf::Options& options, std::unique_ptr<port::Port> port,
                                                      const net::IpAddress& peer, Instant now) {
    auto client = std::make_unique<Client>(options, std::move(port), peer);
    const Status opened = client->open_device(draw_secret(), now);
    const Status ready = opened.ok() ? client->prepare(now) : opened;
    if (!ready.ok()) {
        return ready.error();
    }
    return std::unique_ptr<perf::PerfWorker>(std::move(client));
}

Result<std::unique_ptr<perf::PerfWorker>> make_worker(const perf::Options& options, const app::Carrier& carrier,
                                                      std::unique_ptr<port::Port> port, Instant now) {
    if (options.server) {
        return options.rping ? make_server<perf::RpingServer>(options, std::move(port), now)
                             : make_server<perf::Server>(options, std::move(port), now);
    }
    const Result<net::IpAddress> peer = carrier.peer(options.peer);
    if (!peer.ok()) {
        return peer.error();
    }
    return options.rping ? make_client<perf::RpingClient>(options, std::move(port), peer.value(), now)
                         : make_client<perf::Client>(options, std::move(port), peer.value(), now);
}

Result<int> run_perf(const perf::Options& options) {
    if (pmd::worker_count() > 1) {
        return Error{fmt::format("cairn-perf has one worker, and there are {} lcores", pmd::worker_count()),
                     "give one lcore: -l 0"};
    }
    auto opened = app::Carrier::open(options.carrier);
    if (!opened.ok()) {
        return opened.error();
    }
    app::Carrier& carrier = opened.value();
    auto port = carrier.make_port(0);
    if (!port.ok()) {
        return port.error();
    }
    const pmd::Clock clock;
    auto made = make_worker(options, carrier, std::move(port).value(), clock.now());
    if (!made.ok()) {
        return made.error();
    }
    perf::PerfWorker& worker = *made.value();
    const Status captured = carrier.start_capture();
    if (!captured.ok()) {
        return captured.error();
    }
    telemetry::CounterSnapshot<pmd::ClockCounter> clocks;
    {
        const perf::ProgressPrinter printer(worker);
        const std::array<worker::Task*, 1> tasks{&worker};
        clocks = pmd::run_workers(tasks, clock, options.spin ? worker::Polling::Spin : worker::Polling::Adaptive);
    }
    carrier.stop_capture();
    fmt::print(stderr, "{} bytes per idle connection beside its queues:\n{}{}", verbs::kIdleQpBytes,
               worker.counters_text(), telemetry::text_of(clocks));
    fmt::print("{}", options.json ? worker.json() + '\n' : worker.table());
    return worker.failed() ? 1 : 0;
}

Result<int> run(int argc, char** argv, int first) {
    const Result<perf::Options> options = perf::parse_options(argc, argv, first);
    return options.ok() ? run_perf(options.value()) : Result<int>(options.error());
}

}  // namespace

int main(int argc, char** argv) {
    return app::run("cairn-perf", argc, argv, run);
}
