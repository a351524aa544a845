#include "pmd_glue/worker.hpp"

#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <vector>

#include "lib/base/assert.hpp"
#include "lib/base/steady_time.hpp"
#include "pmd_glue/adaptive_spin.hpp"
#include "pmd_glue/leftovers.hpp"
#include "pmd_glue/poll_fence.hpp"

namespace cairn::pmd {

namespace {

std::atomic<bool> stop_flag{false};

// When the operator asked first, in ns; 0: not yet.
std::atomic<std::int64_t> asked_at{0};

// Whoever asks again wants the end at once. timeout(1) and shells may deliver one request twice, in quick succession.
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

void spin() noexcept {
    rte_pause();
    rte_pause();  // two leave a sibling thread its issue slots and cost no latency that shows
}

// How often this thread lost its CPU to another one.
std::uint64_t preemptions() noexcept {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return static_cast<std::uint64_t>(usage.ru_nivcsw);
}

void give_way(WorkerTask& task, AdaptiveSpin::Advice advice, Instant now) noexcept {
    switch (advice) {
        case AdaptiveSpin::Advice::Spin:
            spin();
            break;
        case AdaptiveSpin::Advice::Yield:
            if (task.can_wait()) {
                task.wait(now);
            } else {
                sched_yield();
            }
            break;
        case AdaptiveSpin::Advice::Sleep:
            task.wait(now);
            break;
    }
}

struct Launch {
    WorkerTask* task;
    unsigned worker;
    const Clock* clock;
    Polling polling;
    std::atomic<std::size_t>* unfinished;  // tasks
    SteadyTime time;
};

void run_worker(Launch& what) noexcept {
    WorkerTask& task = *what.task;
    PollFence fence(what.worker);
    AdaptiveSpin idleness;
    bool finished = false;
    while (!stop_flag.load(std::memory_order_relaxed) &&
           (!finished || what.unfinished->load(std::memory_order_relaxed) != 0)) {
        const Instant now = what.time.on_reading(what.clock->now());
        fence.pass();
        if (task.run_turn(now)) {
            idleness.on_work(now);
            if (what.polling == Polling::Adaptive && task.can_wait() && idleness.may_sleep_at_once()) {
                task.wait(now);
            }
        } else if (!finished && task.finished(now)) {
            finished = true;
            what.unfinished->fetch_sub(1, std::memory_order_relaxed);
        } else if (what.polling == Polling::Spin) {
            spin();
        } else {
            give_way(task, idleness.on_idle(now, preemptions), now);
        }
    }
}

int launch(void* argument) {
    run_worker(*static_cast<Launch*>(argument));
    return 0;
}

}  // namespace

void WorkerTask::wait(Instant) noexcept {
    constexpr timespec kNap{0, 50'000};
    nanosleep(&kNap, nullptr);
}

void stop_on_signals() noexcept {
    struct sigaction action {};
    action.sa_handler = on_stop_signal;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

void request_stop() noexcept {
    stop_flag.store(true, std::memory_order_relaxed);
}

std::uint16_t worker_count() noexcept {
    return static_cast<std::uint16_t>(rte_lcore_count());
}

telemetry::CounterSnapshot<ClockCounter> run_workers(std::span<WorkerTask* const> tasks, const Clock& clock,
                                                     Polling polling) noexcept {
    CAIRN_ASSERT(!tasks.empty() && tasks.size() <= rte_lcore_count() && tasks.size() <= PollFence::kMaxWorkers);
    std::atomic<std::size_t> unfinished{tasks.size()};
    std::vector<Launch> launches;
    for (unsigned i = 0; i < tasks.size(); ++i) {
        launches.push_back({tasks[i], i, &clock, polling, &unfinished, {}});
    }
    unsigned lcore = rte_get_next_lcore(-1U, 1, 0);
    for (std::size_t i = 1; i < tasks.size(); ++i) {
        CAIRN_ASSERT(rte_eal_remote_launch(launch, &launches[i], lcore) == 0);
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
