#include "apps/testpmd/watch.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

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

Watch::Watch(const Options& options, const Tasks& tasks, std::size_t ports)
    : options_(options), tasks_(tasks), ports_(ports), thread_([this] { run(); }) {}

Watch::~Watch() {
    over_.store(true, std::memory_order_relaxed);
    thread_.join();
}

void Watch::run() {
    using Clock = std::chrono::steady_clock;
    const auto started = Clock::now();
    auto printed = started;
    Snapshot before;
    while (!over_.load(std::memory_order_relaxed)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        const auto now = Clock::now();
        const double since_us = std::chrono::duration<double, std::micro>(now - printed).count();
        if (options_.period_s > 0 && since_us >= options_.period_s * 1e6) {
            const Snapshot sum = total_of(tasks_, ports_);
            const Snapshot more = sum.since(before);
            fmt::print(stderr, "rx {:.3f} Mpps, tx {:.3f} Mpps, {} dropped\n",
                       static_cast<double>(more.of(pmd::ForwardCounter::RxPackets)) / since_us,
                       static_cast<double>(more.of(pmd::ForwardCounter::TxPackets)) / since_us,
                       sum.of(pmd::ForwardCounter::TxDropped));
            before = sum;
            printed = now;
        }
        if (options_.duration_s > 0 && std::chrono::duration<double>(now - started).count() >= options_.duration_s) {
            pmd::request_stop();
        }
    }
}

}  // namespace cairn::testpmd
