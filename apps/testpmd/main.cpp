// cairn-testpmd: EAL arguments -- own arguments; forwards frames between DPDK ports, or answers them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "apps/common/app.hpp"
#include "pmd_glue/capture.hpp"
#include "pmd_glue/forwarder.hpp"
#include "pmd_glue/port_argument.hpp"

namespace {

using namespace cairn;

struct Options {
    std::string mode = "io";
    std::vector<std::string> ports;
    std::string ip = "10.77.0.1";
    std::string peer = "10.77.0.2";
    std::string peer_mac = "ff:ff:ff:ff:ff:ff";
    std::uint16_t burst = 32;
    std::uint16_t frame_bytes = 114;
    std::uint32_t buffers = 16384;
    std::uint16_t path_mtu_bytes = 1024;
    double period_s = 1;
    double duration_s = 0;
    std::string pcap;
    bool spin = false;
    bool json = false;
};

using Devices = std::vector<std::unique_ptr<pmd::Device>>;
using Forwarders = std::vector<std::unique_ptr<pmd::Forwarder>>;
using Snapshot = telemetry::CounterSnapshot<pmd::ForwardCounter>;

std::string modes_text() {
    std::string text;
#define CAIRN_X(enumerator, name, what) text += fmt::format("\n  {:<10} {}", name, what);
    CAIRN_FORWARD_MODES(CAIRN_X)
#undef CAIRN_X
    return text;
}

Result<Options> parse_options(int argc, char** argv, int first) {
    CLI::App app("cairn-testpmd: forwards frames; EAL arguments first, then --\nForward modes:" + modes_text());
    Options options;
    app.add_option("--forward-mode", options.mode, "what to do with frames")->capture_default_str();
    app.add_option("--port", options.ports, "port: eth:N, several times; without it all");
    app.add_option("--ip", options.ip, "address of the first port; the others count up")->capture_default_str();
    app.add_option("--peer", options.peer, "txonly: destination address")->capture_default_str();
    app.add_option("--peer-mac", options.peer_mac, "txonly: destination MAC")->capture_default_str();
    app.add_option("--burst", options.burst, "frames per burst")->check(CLI::Range(1, 64))->capture_default_str();
    app.add_option("--frame-bytes", options.frame_bytes, "txonly: bytes of a frame, without FCS")
        ->check(CLI::Range(60, 9000))
        ->capture_default_str();
    app.add_option("--buffers", options.buffers, "packet buffers of each port")
        ->check(CLI::Range(512U, 4194304U))
        ->capture_default_str();
    app.add_option("--path-mtu", options.path_mtu_bytes, "largest path MTU to make room for")
        ->check(CLI::IsMember({256U, 512U, 1024U, 2048U, 4096U}))
        ->capture_default_str();
    app.add_option("--stats-period", options.period_s, "seconds between statistics lines; 0: none")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    app.add_option("--duration", options.duration_s, "seconds to run; 0: until a signal")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    app.add_option("--pcap", options.pcap, "record the first port's RoCEv2 frames in this file");
    app.add_flag("--spin", options.spin, "never give the CPU away");
    app.add_flag("--json", options.json, "end with one JSON object on stdout");
    std::vector<char*> arguments{argv[0]};
    arguments.insert(arguments.end(), argv + first, argv + argc);
    try {
        app.parse(static_cast<int>(arguments.size()), arguments.data());
    } catch (const CLI::CallForHelp&) {
        std::cout << app.help();
        std::exit(0);
    } catch (const CLI::ParseError& error) {
        return Error{error.what(), "--help lists the arguments"};
    }
    return options;
}

Result<pmd::ForwardConfig> config_of(const Options& options) {
    pmd::ForwardConfig config;
    const std::optional<pmd::ForwardMode> mode = pmd::forward_mode_named(options.mode);
    if (!mode.has_value()) {
        return Error{fmt::format("--forward-mode {} is none", options.mode), "--help lists the modes"};
    }
    const Result<net::IpAddress> local = net::IpAddress::parse(options.ip);
    const Result<net::IpAddress> peer = net::IpAddress::parse(options.peer);
    const Result<net::MacAddress> mac = net::MacAddress::parse(options.peer_mac);
    if (!local.ok()) {
        return local.error();
    }
    if (!peer.ok()) {
        return peer.error();
    }
    if (!mac.ok()) {
        return mac.error();
    }
    if (local.value().is_v4() != peer.value().is_v4() && *mode == pmd::ForwardMode::TxOnly) {
        return Error{"--ip and --peer are of two families", "give both as IPv4 or both as IPv6"};
    }
    config.mode = *mode;
    config.burst = options.burst;
    config.frame_bytes = options.frame_bytes;
    config.local = local.value();
    config.peer = peer.value();
    config.peer_mac = mac.value();
    return config;
}

Result<Devices> open_devices(const Options& options, std::uint16_t workers) {
    std::vector<std::uint16_t> ports = pmd::all_ports();
    if (!options.ports.empty()) {
        ports.clear();
        for (const std::string& text : options.ports) {
            const Result<std::uint16_t> port = pmd::choose_ethdev(text);
            if (!port.ok()) {
                return port.error();
            }
            ports.push_back(port.value());
        }
    }
    if (ports.empty()) {
        return Error{"EAL found no ethernet port", "add a --vdev or -a argument before \"--\""};
    }
    Devices devices;
    for (const std::uint16_t port : ports) {
        pmd::DeviceConfig config;
        config.port_id = port;
        config.wish.workers = workers;
        config.wish.path_mtu_bytes = options.path_mtu_bytes;
        config.buffers = options.buffers;
        auto device = pmd::Device::open(config);
        if (!device.ok()) {
            return device.error();
        }
        fmt::print(stderr, "{}\n", device.value()->describe());
        devices.push_back(std::move(device).value());
    }
    return devices;
}

Snapshot total(const Forwarders& forwarders, std::size_t ports) {
    Snapshot sum;
    for (const auto& forwarder : forwarders) {
        for (std::size_t port = 0; port < ports; ++port) {
            sum += forwarder->counters(port).snapshot();
        }
    }
    return sum;
}

// Statistics lines and the end of a limited run, away from the workers.
class Watch {
public:
    Watch(const Options& options, const Forwarders& forwarders, std::size_t ports)
        : options_(options), forwarders_(forwarders), ports_(ports), thread_([this] { run(); }) {}
    ~Watch() {
        over_.store(true, std::memory_order_relaxed);
        thread_.join();
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

private:
    using Clock = std::chrono::steady_clock;
    void run() {
        const auto started = Clock::now();
        auto printed = started;
        Snapshot before;
        while (!over_.load(std::memory_order_relaxed)) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
            const auto now = Clock::now();
            const double since_us = std::chrono::duration<double, std::micro>(now - printed).count();
            if (options_.period_s > 0 && since_us >= options_.period_s * 1e6) {
                const Snapshot sum = total(forwarders_, ports_);
                const Snapshot more = sum.since(before);
                fmt::print(stderr, "rx {:.3f} Mpps, tx {:.3f} Mpps, {} dropped\n",
                           static_cast<double>(more.of(pmd::ForwardCounter::RxPackets)) / since_us,
                           static_cast<double>(more.of(pmd::ForwardCounter::TxPackets)) / since_us,
                           sum.of(pmd::ForwardCounter::TxDropped));
                before = sum;
                printed = now;
            }
            if (options_.duration_s > 0 &&
                std::chrono::duration<double>(now - started).count() >= options_.duration_s) {
                pmd::request_stop();
            }
        }
    }
    const Options& options_;
    const Forwarders& forwarders_;
    std::size_t ports_;
    std::atomic<bool> over_{false};
    std::thread thread_;
};

Result<int> run(int argc, char** argv, int first) {
    const Result<Options> parsed = parse_options(argc, argv, first);
    if (!parsed.ok()) {
        return parsed.error();
    }
    const Options& options = parsed.value();
    const Result<pmd::ForwardConfig> config = config_of(options);
    if (!config.ok()) {
        return config.error();
    }
    Result<Devices> opened = open_devices(options, pmd::worker_count());
    if (!opened.ok()) {
        return opened.error();
    }
    const Devices& devices = opened.value();
    std::uint16_t queues = pmd::worker_count();
    for (const auto& device : devices) {
        queues = std::min(queues, device->plan().queues);
    }
    Forwarders forwarders;
    std::vector<pmd::WorkerTask*> tasks;
    for (std::uint16_t worker = 0; worker < queues; ++worker) {
        forwarders.push_back(std::make_unique<pmd::Forwarder>(config.value(), devices, worker));
        tasks.push_back(forwarders.back().get());
    }
    std::unique_ptr<pmd::Capture> capture;
    if (!options.pcap.empty()) {
        auto started = pmd::Capture::start(*devices.front(), options.pcap);
        if (!started.ok()) {
            return started.error();
        }
        capture = std::move(started).value();
    }
    fmt::print(stderr, "{} on {} ports with {} workers\n", options.mode, devices.size(), queues);
    const pmd::Clock clock;
    {
        const Watch watch(options, forwarders, devices.size());
        pmd::run_workers(tasks, clock, options.spin ? pmd::Polling::Spin : pmd::Polling::Adaptive);
    }
    capture.reset();
    for (std::size_t port = 0; port < devices.size(); ++port) {
        Snapshot sum;
        for (const auto& forwarder : forwarders) {
            sum += forwarder->counters(port).snapshot();
        }
        fmt::print(stderr, "{}:\n{}", devices[port]->name(), telemetry::text_of(sum));
    }
    if (options.json) {
        fmt::print("{}\n", telemetry::json_of(total(forwarders, devices.size())));
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return app::run("cairn-testpmd", argc, argv, run);
}
