// cairn-testpmd: EAL arguments -- own arguments. Forwards frames between DPDK ports, or answers what ports receive.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/common/app.hpp"
#include "apps/common/ports.hpp"
#include "apps/testpmd/options.hpp"
#include "apps/testpmd/watch.hpp"
#include "pmd_glue/echo.hpp"
#include "pmd_glue/forwarder.hpp"
#include "pmd_glue/lcores.hpp"
#include "pmd_glue/port_argument.hpp"

namespace {

using namespace cairn;

// The ports and their workers in any mode. The workers end first.
struct Bench {
    std::vector<std::unique_ptr<pmd::Device>> devices;  // for modes that work on frames
    std::vector<app::Ports> opened;                     // for modes that need a Port
    std::unique_ptr<pmd::Capture> capture;
    std::vector<std::string> names;
    testpmd::Tasks tasks;
};

// Refuses sockets, which carry no frames.
Status check_for_frames(const testpmd::Options& options) {
    constexpr std::string_view kRemedy = "use --forward-mode roce-echo, or an ethernet port: --port eth:N";
    for (const std::string& port : options.ports) {
        if (port.starts_with("uring")) {
            return Error{
                fmt::format("--forward-mode {} needs frames, and --port {} carries datagrams only", options.mode, port),
                std::string(kRemedy)};
        }
    }
    if (options.ports.empty() && pmd::all_ports().empty()) {
        return Error{fmt::format("--forward-mode {} needs frames, and EAL found no ethernet port", options.mode),
                     "add a --vdev or -a argument before \"--\", or use --forward-mode roce-echo over a socket"};
    }
    return Nothing{};
}

// Returns the ports asked for, or all of EAL's. An empty name is left to choose_port().
std::vector<std::string> port_names(const testpmd::Options& options) {
    std::vector<std::string> names = options.ports;
    if (names.empty()) {
        for (const std::uint16_t port : pmd::all_ports()) {
            names.push_back(fmt::format("eth:{}", port));
        }
    }
    return names.empty() ? std::vector<std::string>{""} : names;
}

net::IpAddress counted_up(const net::IpAddress& first, std::size_t by) {
    auto octets = first.octets();
    octets.back() = static_cast<std::uint8_t>(octets.back() + by);
    return net::IpAddress::from_v6(octets);
}

Result<Bench> open_forwarders(const testpmd::Options& options, const pmd::ForwardConfig& forwarding) {
    Bench bench;
    pmd::DeviceConfig config;
    config.wish.workers = pmd::worker_count();
    config.wish.path_mtu_bytes = options.each_port.path_mtu_bytes;
    config.wish.frame_bytes = forwarding.mode == pmd::ForwardMode::TxOnly ? forwarding.frame_bytes : std::uint16_t{0};
    config.buffers = options.each_port.buffers;
    std::vector<std::uint16_t> ports;
    std::vector<pmd::DeviceFacts> facts;
    for (const std::string& name : port_names(options)) {
        const Result<std::uint16_t> port = pmd::choose_ethdev(name);
        if (!port.ok()) {
            return port.error();
        }
        Result<pmd::DeviceFacts> known = pmd::Device::facts_of(port.value());
        if (!known.ok()) {
            return known.error();
        }
        ports.push_back(port.value());
        facts.push_back(std::move(known).value());
    }
    // A device spreads received frames over all its queues, so it gets no more queues than there are workers.
    const Result<std::uint16_t> workers = pmd::workers_in_common(facts, config.wish);
    if (!workers.ok()) {
        return workers.error();
    }
    config.wish.workers = workers.value();
    for (const std::uint16_t port : ports) {
        config.port_id = port;
        auto device = pmd::Device::open(config);
        if (!device.ok()) {
            return device.error();
        }
        fmt::print(stderr, "{}\n", device.value()->describe());
        bench.names.push_back(device.value()->name());
        bench.devices.push_back(std::move(device).value());
    }
    for (std::uint16_t worker = 0; worker < config.wish.workers; ++worker) {
        bench.tasks.push_back(std::make_unique<pmd::Forwarder>(forwarding, bench.devices, worker));
    }
    if (!options.each_port.pcap.empty()) {
        auto capture = pmd::Capture::start(*bench.devices.front(), options.each_port.pcap);
        if (!capture.ok()) {
            return capture.error();
        }
        bench.capture = std::move(capture).value();
    }
    return bench;
}

Result<Bench> open_echoes(const testpmd::Options& options, const pmd::ForwardConfig& forwarding) {
    Bench bench;
    for (const std::string& name : port_names(options)) {
        app::PortOptions config = options.each_port;
        config.port = name;
        (options.ip.empty() ? config.private_ip : config.ip) = counted_up(forwarding.local, bench.opened.size()).text();
        config.workers = pmd::worker_count();
        config.pcap = bench.opened.empty() ? options.each_port.pcap : "";
        auto ports = app::Ports::open(config);
        if (!ports.ok()) {
            return ports.error();
        }
        bench.names.push_back(ports.value().name());
        bench.opened.push_back(std::move(ports).value());
    }
    for (std::uint16_t worker = 0; worker < pmd::worker_count(); ++worker) {
        std::vector<std::unique_ptr<port::Port>> ports;
        for (app::Ports& each : bench.opened) {
            auto port = each.make_port(worker);
            if (!port.ok()) {
                return port.error();
            }
            ports.push_back(std::move(port).value());
        }
        bench.tasks.push_back(std::make_unique<pmd::Echo>(forwarding.mode, options.each_port.burst, std::move(ports)));
    }
    const Status captured = bench.opened.front().start_capture();
    if (!captured.ok()) {
        return captured.error();
    }
    return bench;
}

Result<Bench> open_bench(const testpmd::Options& options, const pmd::ForwardConfig& config) {
    if (config.mode == pmd::ForwardMode::RoceEcho) {
        return open_echoes(options, config);
    }
    const Status possible = check_for_frames(options);
    if (!possible.ok()) {
        return possible.error();
    }
    return pmd::is_echo(config.mode) ? open_echoes(options, config) : open_forwarders(options, config);
}

void report(const testpmd::Options& options, const Bench& bench, double seconds) {
    for (std::size_t port = 0; port < bench.names.size(); ++port) {
        fmt::print(stderr, "{}:\n{}", bench.names[port], telemetry::text_of(testpmd::counts_of(bench.tasks, port)));
        for (const auto& task : bench.tasks) {
            fmt::print(stderr, "{}", task->reasons_text(port));
        }
    }
    fmt::print("{}", options.json ? testpmd::json_of_run(bench.tasks, bench.names, seconds) + '\n'
                                  : testpmd::table_of_run(bench.tasks, bench.names, seconds));
}

Result<int> run(int argc, char** argv, int first) {
    const Result<testpmd::Options> parsed = testpmd::parse_options(argc, argv, first);
    if (!parsed.ok()) {
        return parsed.error();
    }
    const testpmd::Options& options = parsed.value();
    const Result<pmd::ForwardConfig> config = testpmd::forward_config(options);
    if (!config.ok()) {
        return config.error();
    }
    Result<Bench> opened = open_bench(options, config.value());
    if (!opened.ok()) {
        return opened.error();
    }
    Bench& bench = opened.value();
    std::vector<worker::Task*> tasks;
    for (const auto& task : bench.tasks) {
        tasks.push_back(task.get());
    }
    fmt::print(stderr, "{} on {} ports with {} workers\n", options.mode, bench.names.size(), tasks.size());
    const pmd::Clock clock;
    const auto started = std::chrono::steady_clock::now();
    telemetry::CounterSnapshot<pmd::ClockCounter> clocks;
    {
        const testpmd::Watch watch(options, bench.tasks, bench.names);
        clocks = pmd::run_workers(tasks, clock, options.spin ? worker::Polling::Spin : worker::Polling::Adaptive);
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    bench.capture.reset();
    for (app::Ports& each : bench.opened) {
        each.stop_capture();
    }
    report(options, bench, seconds);
    fmt::print(stderr, "{}", telemetry::text_of(clocks));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return app::run("cairn-testpmd", argc, argv, run);
}
