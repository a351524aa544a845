#include "pmd_glue/worker.hpp"

#include <rte_pause.h>

#include <csignal>
#include <ctime>

#include <sched.h>

namespace cairn::pmd {

namespace {

std::atomic<bool> stop_flag{false};

extern "C" void request_stop(int) {
    stop_flag.store(true, std::memory_order_relaxed);
}

constexpr Duration kSpin = microseconds(50);  // idle time spent spinning
constexpr Duration kYield = milliseconds(1);  // then yielding, before sleeping
constexpr long kSleepNs = 50'000;

void wait_idle(Duration idle) noexcept {
    if (idle < kSpin) {
        rte_pause();
        rte_pause();  // two leave the sibling thread its issue slots and cost no latency that shows
    } else if (idle < kYield) {
        sched_yield();
    } else {
        const timespec nap{0, kSleepNs};
        nanosleep(&nap, nullptr);
    }
}

}  // namespace

const std::atomic<bool>& stop_requested() noexcept {
    return stop_flag;
}

void stop_on_signals() noexcept {
    struct sigaction action {};
    action.sa_handler = request_stop;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

void run_worker(WorkerTask& task, const Clock& clock, Polling polling) noexcept {
    Instant last_work = clock.now();
    while (!stop_flag.load(std::memory_order_relaxed)) {
        const Instant now = clock.now();
        if (task.run_turn(now)) {
            last_work = now;
        } else if (task.finished(now)) {
            return;
        } else if (polling == Polling::Spin) {
            wait_idle(Duration{});
        } else {
            wait_idle(now - last_work);
        }
    }
}

}  // namespace cairn::pmd
