// cairn-counters: one service on each RPC system of Cairn. EAL arguments -- own arguments.
#include <CLI/CLI.hpp>

#include <string>

#include "apps/common/app.hpp"
#include "apps/common/choice.hpp"
#include "apps/common/command_line.hpp"
#include "apps/common/ports.hpp"
#include "apps/counters/counter_worker.hpp"
#include "pmd_glue/lcores.hpp"

namespace {

using namespace cairn;

constexpr std::size_t kMessageBytes = std::size_t{64} << 20U;  // rings and blocks of all sessions too

enum class SystemKind : std::uint8_t { Erpc, Copyrpc, Scalerpc };

struct Options {
    app::PortOptions ports;
    SystemKind system = SystemKind::Erpc;
    std::string peer;
    bool spin = false;
    counters::Plan plan;
};

Result<Options> parse_options(int argc, char** argv, int first) {
    Options options;
    CLI::App app("cairn-counters: counters that clients add to; EAL arguments first, then --");
    options.ports.private_ip = app::kPrivateIp;
    app::add_ports(app, options.ports);
    app::add_path_mtu(app, options.plan.path_mtu_bytes, "path MTU; both ends use the same")->capture_default_str();
    app::add_polling(app, options.spin);
    app::add_pcap(app, options.ports.pcap);
    app::add_service(app, options.plan.service);
    app::add_choice(app, "--system", options.system,
                    {{"erpc", SystemKind::Erpc}, {"copyrpc", SystemKind::Copyrpc}, {"scalerpc", SystemKind::Scalerpc}},
                    "RPC system; both ends use the same");
    app.add_option("--peer", options.peer, "the server's IP address; without it this end serves");
    app.add_option("--rounds", options.plan.rounds, "additions of a client")->capture_default_str();
    const Status parsed = app::parse_arguments(app, argc, argv, first);
    if (!parsed.ok()) {
        return parsed.error();
    }
    app::note_given(app, options.ports);
    options.ports.path_mtu_bytes = options.plan.path_mtu_bytes;
    return options;
}

template <class Host>
Result<int> run_on(const Options& options, app::Ports& ports) {
    const pmd::Clock clock;
    auto memory = pmd::HeapBlock::allocate(kMessageBytes, "messages");
    if (!memory.ok()) {
        return memory.error();
    }
    auto port = ports.make_port(0);
    if (!port.ok()) {
        return port.error();
    }
    counters::CounterWorker<Host> worker(options.plan, std::move(port).value(), std::move(memory).value());
    Status ready = worker.open(clock.now());
    if (ready.ok()) {
        ready = ports.start_capture();
    }
    if (!ready.ok()) {
        return ready.error();
    }
    worker::Task* const task = &worker;
    pmd::run_workers({&task, 1}, clock, options.spin ? worker::Polling::Spin : worker::Polling::Adaptive);
    ports.stop_capture();
    return worker.exit_status();
}

Result<int> run(int argc, char** argv, int first) {
    Result<Options> parsed = parse_options(argc, argv, first);
    if (!parsed.ok()) {
        return parsed.error();
    }
    Options& options = parsed.value();
    auto opened = app::Ports::open(options.ports);
    if (!opened.ok()) {
        return opened.error();
    }
    if (!options.peer.empty()) {
        const Result<net::IpAddress> server = opened.value().peer(options.peer);
        if (!server.ok()) {
            return server.error();
        }
        options.plan.server = server.value();
    }
    switch (options.system) {
        case SystemKind::Erpc:
            break;
        case SystemKind::Copyrpc:
            return run_on<counters::CopyrpcHost>(options, opened.value());
        case SystemKind::Scalerpc:
            return run_on<counters::ScalerpcHost>(options, opened.value());
    }
    return run_on<counters::ErpcHost>(options, opened.value());
}

}  // namespace

int main(int argc, char** argv) {
    return cairn::app::run("cairn-counters", argc, argv, run);
}
