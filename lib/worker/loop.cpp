#include "lib/worker/loop.hpp"

#include <sched.h>
#include <sys/resource.h>

#include <ctime>

#include "lib/worker/adaptive_spin.hpp"

namespace cairn::worker {

namespace {

void spin() noexcept {
    // Two leave a sibling thread its issue slots and cost no latency that shows.
    __builtin_ia32_pause();
    __builtin_ia32_pause();
}

// How often this thread lost its CPU to another one.
std::uint64_t preemptions() noexcept {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return static_cast<std::uint64_t>(usage.ru_nivcsw);
}

void give_way(Task& task, AdaptiveSpin::Advice advice, Instant now) noexcept {
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

}  // namespace

void Task::wait(Instant) noexcept {
    constexpr timespec kNap{0, 50'000};
    nanosleep(&kNap, nullptr);
}

SteadyTime run_loop(Task& task, LoopGroup& group, LoopHost& host) noexcept {
    SteadyTime time;
    AdaptiveSpin idleness;
    bool finished = false;
    while (!group.stop.load(std::memory_order_relaxed) &&
           (!finished || group.unfinished.load(std::memory_order_relaxed) != 0)) {
        const Instant now = time.on_reading(host.read_clock());
        host.pass();
        if (task.run_turn(now)) {
            idleness.on_work(now);
            if (group.polling == Polling::Adaptive && task.can_wait() && idleness.may_sleep_at_once()) {
                task.wait(now);
            }
        } else if (!finished && task.finished(now)) {
            finished = true;
            group.unfinished.fetch_sub(1, std::memory_order_relaxed);
        } else if (group.polling == Polling::Spin) {
            spin();
        } else {
            give_way(task, idleness.on_idle(now, preemptions), now);
        }
    }
    return time;
}

}  // namespace cairn::worker
