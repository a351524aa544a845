#include "pmd_glue/lcores.hpp"

#include <rte_launch.h>
#include <rte_lcore.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <vector>

#include "lib/base/assert.hpp"
#include "lib/base/steady_time.hpp"
#include "pmd_glue/leftovers.hpp"
#include "pmd_glue/poll_fence.hpp"

namespace cairn::pmd {

namespace {

std::atomic<bool> stop_flag{false};

// The time of the first request to stop, in ns; 0: there is none yet.
std::atomic<std::int64_t> asked_at{0};

// Handles a request to stop. A second one ends the process at once. timeout(1) and shells may deliver one request
// twice, in quick succession.
extern "C" void on_stop_signal(int signal) {
    constexpr std::int64_t kOneRequestNs = 100'000'000;
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const std::int64_t now_ns = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
    const std::int64_t before = asked_at.load(std::memory_order_relaxed);
    if (before == 0) {
        asked_at.store(now_ns, std::memory_order_relaxed);
        stop_flag.store(true, std::memory_order_relaxed);
    } else if (now_ns - before > kOneRequestNs) {
        remove_leftovers();
        _exit(128 + signal);
    }
}

// The lcore of a loop: its EAL clock, and the fence that unmapping drivers wait for.
class Lcore {
public:
    Lcore(const Clock& clock, unsigned worker) noexcept : clock_(clock), fence_(worker) {}
    [[nodiscard]] Instant read_clock() noexcept { return clock_.now(); }
    void pass() noexcept { fence_.pass(); }

private:
    const Clock& clock_;
    PollFence fence_;
};

struct Launch {
    worker::Task* task;
    unsigned worker;
    const Clock* clock;
    worker::LoopGroup* group;
    SteadyTime time;
};

int launch(void* argument) {
    auto& what = *static_cast<Launch*>(argument);
    Lcore lcore(*what.clock, what.worker);
    what.time = worker::run_loop(*what.task, *what.group, lcore);
    return 0;
}

}  // namespace

void stop_on_signals() noexcept {
    struct sigaction action {};
    action.sa_handler = on_stop_signal;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

void request_stop() noexcept {
    stop_flag.store(true, std::memory_order_relaxed);
}

bool stop_requested() noexcept {
    return stop_flag.load(std::memory_order_relaxed);
}

std::vector<std::uint32_t> cpus_beside_lcores() {
    std::vector<std::uint32_t> others = cpus_before_eal();
    for (unsigned lcore = 0; lcore < RTE_MAX_LCORE; ++lcore) {
        if (rte_lcore_is_enabled(lcore) != 0) {
            const cpu_set_t own = rte_lcore_cpuset(lcore);
            std::erase_if(others, [&own](std::uint32_t cpu) { return CPU_ISSET(cpu, &own); });
        }
    }
    return others.empty() ? cpus_before_eal() : others;
}

std::uint16_t worker_count() noexcept {
    return static_cast<std::uint16_t>(rte_lcore_count());
}

telemetry::CounterSnapshot<ClockCounter> run_workers(std::span<worker::Task* const> tasks, const Clock& clock,
                                                     worker::Polling polling) noexcept {
    CAIRN_ASSERT(!tasks.empty() && tasks.size() <= rte_lcore_count() && tasks.size() <= PollFence::kMaxWorkers);
    worker::LoopGroup group{stop_flag, tasks.size(), polling};
    std::vector<Launch> launches;
    for (unsigned i = 0; i < tasks.size(); ++i) {
        launches.push_back({tasks[i], i, &clock, &group, {}});
    }
    unsigned lcore = rte_get_next_lcore(-1U, 1, 0);
    for (std::size_t i = 1; i < tasks.size(); ++i) {
        const int launched = rte_eal_remote_launch(launch, &launches[i], lcore);
        CAIRN_ASSERT(launched == 0);
        lcore = rte_get_next_lcore(lcore, 1, 0);
    }
    launch(launches.data());
    rte_eal_mp_wait_lcore();
    telemetry::CounterSnapshot<ClockCounter> counts;
    for (const Launch& each : launches) {
        counts.values[static_cast<std::size_t>(ClockCounter::WentBack)] += each.time.went_back();
        counts.values[static_cast<std::size_t>(ClockCounter::Leapt)] += each.time.leapt();
    }
    return counts;
}

}  // namespace cairn::pmd
