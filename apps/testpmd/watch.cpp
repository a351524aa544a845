#include "apps/testpmd/watch.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <string_view>

#include "pmd_glue/lcores.hpp"

namespace cairn::testpmd {

Snapshot counts_of(const Tasks& tasks, std::size_t port) {
    Snapshot sum;
    for (const auto& task : tasks) {
        sum += task->counters(port).snapshot();
    }
    return sum;
}

Snapshot total_of(const Tasks& tasks, std::size_t ports) {
    Snapshot sum;
    for (std::size_t port = 0; port < ports; ++port) {
        sum += counts_of(tasks, port);
    }
    return sum;
}

namespace {

double mpps(const Snapshot& counts, pmd::ForwardCounter which, double seconds) {
    return seconds > 0 ? static_cast<double>(counts.of(which)) / seconds / 1e6 : 0;
}

std::string with_rates(const Snapshot& counts, double seconds) {
    std::string counters = telemetry::json_of(counts);
    counters.pop_back();
    return fmt::format("{},\"rx_mpps\":{:.6f},\"tx_mpps\":{:.6f}", counters,
                       mpps(counts, pmd::ForwardCounter::RxPackets, seconds),
                       mpps(counts, pmd::ForwardCounter::TxPackets, seconds));
}

void print_rates(std::string_view what, const Snapshot& more, const Snapshot& sum, double seconds) {
    fmt::print(stderr, "{}rx {:.3f} Mpps, tx {:.3f} Mpps, {} dropped\n", what,
               mpps(more, pmd::ForwardCounter::RxPackets, seconds), mpps(more, pmd::ForwardCounter::TxPackets, seconds),
               sum.of(pmd::ForwardCounter::TxDropped));
}

}  // namespace

std::string json_of_run(const Tasks& tasks, const std::vector<std::string>& ports, double seconds) {
    std::string each;
    for (std::size_t port = 0; port < ports.size(); ++port) {
        std::string counts = with_rates(counts_of(tasks, port), seconds);
        each += fmt::format("{}{{\"port\":\"{}\",{}}}", port == 0 ? "" : ",", ports[port], counts.substr(1));
    }
    return fmt::format("{},\"seconds\":{:.3f},\"ports\":[{}]}}", with_rates(total_of(tasks, ports.size()), seconds),
                       seconds, each);
}

std::string table_of_run(const Tasks& tasks, const std::vector<std::string>& ports, double seconds) {
    std::string text = fmt::format(" {:<24}{:<16}{:<12}{:<16}{:<12}{}, in {:.3f} s\n", "port", "received", "Mpps",
                                   "sent", "Mpps", "dropped", seconds);
    for (std::size_t port = 0; port < ports.size(); ++port) {
        const Snapshot counts = counts_of(tasks, port);
        text += fmt::format(
            " {:<24}{:<16}{:<12.6f}{:<16}{:<12.6f}{}\n", ports[port], counts.of(pmd::ForwardCounter::RxPackets),
            mpps(counts, pmd::ForwardCounter::RxPackets, seconds), counts.of(pmd::ForwardCounter::TxPackets),
            mpps(counts, pmd::ForwardCounter::TxPackets, seconds), counts.of(pmd::ForwardCounter::TxDropped));
    }
    return text;
}

Watch::Watch(const Options& options, const Tasks& tasks, const std::vector<std::string>& ports)
    : options_(options), tasks_(tasks), ports_(ports), thread_([this] { run(); }) {}

Watch::~Watch() {
    over_.store(true, std::memory_order_relaxed);
    thread_.join();
}

void Watch::run() {
    using Clock = std::chrono::steady_clock;
    const auto started = Clock::now();
    auto printed = started;
    std::vector<Snapshot> before(ports_.size());
    while (!over_.load(std::memory_order_relaxed)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        const auto now = Clock::now();
        const double since = std::chrono::duration<double>(now - printed).count();
        if (options_.period_s > 0 && since >= options_.period_s) {
            print_period(before, since);
            printed = now;
        }
        if (options_.duration_s > 0 && std::chrono::duration<double>(now - started).count() >= options_.duration_s) {
            pmd::request_stop();
        }
    }
}

// Prints the sum of all ports, then each port if there are several.
void Watch::print_period(std::vector<Snapshot>& before, double seconds) const {
    std::vector<Snapshot> more(ports_.size());
    Snapshot all_more;
    for (std::size_t port = 0; port < ports_.size(); ++port) {
        const Snapshot counts = counts_of(tasks_, port);
        more[port] = counts.since(before[port]);
        all_more += more[port];
        before[port] = counts;
    }
    print_rates("", all_more, total_of(tasks_, ports_.size()), seconds);
    for (std::size_t port = 0; ports_.size() > 1 && port < ports_.size(); ++port) {
        print_rates("  " + ports_[port] + ": ", more[port], before[port], seconds);
    }
}

}  // namespace cairn::testpmd
