// cairn-rpcbench: EAL arguments -- own arguments; parse, build, run.
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/common/app.hpp"
#include "apps/rpcbench/bench_worker.hpp"
#include "apps/rpcbench/report.hpp"
#include "pmd_glue/capture.hpp"
#include "pmd_glue/port_argument.hpp"

namespace {

using namespace cairn;

constexpr std::size_t kMemoryBytes = std::size_t{32} << 20U;  // of messages, per worker

std::uint64_t unguessable() {
    std::random_device entropy;
    return (std::uint64_t{entropy()} << 32U) | entropy();
}

Result<std::unique_ptr<pmd::Device>> open_device(const rpcbench::Options& options, std::uint16_t workers) {
    const Result<std::uint16_t> port = pmd::choose_port(options.port);
    if (!port.ok()) {
        return port.error();
    }
    pmd::DeviceConfig config;
    config.port_id = port.value();
    config.wish.workers = workers;
    config.wish.path_mtu_bytes = static_cast<std::uint16_t>(options.path_mtu_bytes);
    config.wish.data_room_bytes = static_cast<std::uint16_t>(options.data_room_bytes);
    config.buffers = options.buffers;
    return pmd::Device::open(config);
}

Result<int> run_bench(const rpcbench::Options& options, const net::IpAddress& local, const net::IpAddress* peer) {
    const std::uint16_t workers = pmd::worker_count();
    auto device = open_device(options, workers);
    if (!device.ok()) {
        return device.error();
    }
    fmt::print(stderr, "{}\n", device.value()->describe());
    const pmd::Clock clock;
    std::vector<std::unique_ptr<rpcbench::BenchWorker>> benches;
    std::vector<pmd::WorkerTask*> tasks;
    for (std::uint16_t i = 0; i < workers; ++i) {
        Result<pmd::HeapBlock> memory = pmd::HeapBlock::allocate(kMemoryBytes, "messages");
        if (!memory.ok()) {
            return memory.error();
        }
        benches.push_back(
            std::make_unique<rpcbench::BenchWorker>(options, *device.value(), local, i, std::move(memory).value()));
        fmt::print(stderr, "{}\n", benches.back()->port().describe());
        const Status prepared = benches.back()->prepare(peer, unguessable(), clock.now());
        if (!prepared.ok()) {
            return prepared.error();
        }
        tasks.push_back(benches.back().get());
    }
    std::unique_ptr<pmd::Capture> capture;
    if (!options.pcap.empty()) {
        auto started = pmd::Capture::start(*device.value(), options.pcap,
                                           options.pcap_all ? pmd::Capture::Frames::All : pmd::Capture::Frames::Roce);
        if (!started.ok()) {
            return started.error();
        }
        capture = std::move(started).value();
    }
    {
        const rpcbench::ProgressPrinter printer(benches);
        pmd::run_workers(tasks, clock, options.spin ? pmd::Polling::Spin : pmd::Polling::Adaptive);
    }
    capture.reset();
    rpcbench::print_counters(benches);
    if (options.json) {
        rpcbench::print_json(options, benches);
    }
    const bool failed = std::any_of(benches.begin(), benches.end(), [](const auto& bench) { return bench->failed(); });
    return failed ? 1 : 0;
}

Result<int> run(int argc, char** argv, int first) {
    const Result<rpcbench::Options> options = rpcbench::parse_options(argc, argv, first);
    if (!options.ok()) {
        return options.error();
    }
    const Result<net::IpAddress> local = net::IpAddress::parse(options.value().ip);
    if (!local.ok()) {
        return local.error();
    }
    if (options.value().peer.empty()) {
        return run_bench(options.value(), local.value(), nullptr);
    }
    const Result<net::IpAddress> peer = net::IpAddress::parse(options.value().peer);
    if (!peer.ok()) {
        return peer.error();
    }
    if (peer.value().is_v4() != local.value().is_v4()) {
        return Error{fmt::format("--ip {} and --peer {} are of two families", options.value().ip, options.value().peer),
                     "give both as IPv4 or both as IPv6"};
    }
    return run_bench(options.value(), local.value(), &peer.value());
}

}  // namespace

int main(int argc, char** argv) {
    return app::run("cairn-rpcbench", argc, argv, run);
}
