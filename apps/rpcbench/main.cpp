// cairn-rpcbench: EAL arguments -- own arguments; parse, build, run.
#include <fmt/format.h>

#include <cstring>
#include <random>
#include <string_view>

#include "apps/rpcbench/bench_task.hpp"

namespace {

constexpr int kBadUsage = 2;

int complain(const cairn::Error& error) {
    fmt::print(stderr, "cairn-rpcbench: {}\n", error.text());
    return kBadUsage;
}

int run(int argc, char** argv, int first) {
    using namespace cairn;
    const Result<rpcbench::Options> options = rpcbench::parse_options(argc, argv, first);
    if (!options.ok()) {
        return complain(options.error());
    }
    const Result<net::IpAddress> local = net::IpAddress::parse(options.value().ip);
    if (!local.ok()) {
        return complain(local.error());
    }
    pmd::EthdevPortConfig config;
    config.port_id = options.value().port_id;
    config.local = local.value();
    config.burst = static_cast<std::uint16_t>(options.value().burst);
    auto port = pmd::EthdevPort::open(config);
    if (!port.ok()) {
        return complain(port.error());
    }
    fmt::print(stderr, "{}\n", port.value()->describe());
    const pmd::Clock clock;
    std::random_device entropy;
    const std::uint64_t seed = (std::uint64_t{entropy()} << 32U) | entropy();
    rpcbench::BenchTask task(options.value(), *port.value());
    const Status prepared = task.prepare(seed, clock.now());
    if (!prepared.ok()) {
        return complain(prepared.error());
    }
    pmd::stop_on_signals();
    pmd::run_worker(task, clock, options.value().spin ? pmd::Polling::Spin : pmd::Polling::Adaptive);
    task.print_result();
    return task.failed() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        if (std::string_view(argv[i]) == "--help") {  // without EAL
            return run(argc, argv, i);
        }
    }
    const auto eal = cairn::pmd::Eal::start(argc, argv);
    if (!eal.ok()) {
        return complain(eal.error());
    }
    return run(argc, argv, eal.value().consumed() + 1);
}
