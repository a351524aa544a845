#include "lib/worker/loop.hpp"

#include <sched.h>
#include <sys/resource.h>

#include <ctime>

namespace cairn::worker {

namespace detail {

void spin() noexcept {
    // They leave issue slots to a sibling thread of the core.
    __builtin_ia32_pause();
    __builtin_ia32_pause();
}

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

}  // namespace detail

void Task::wait(Instant) noexcept {
    constexpr timespec kNap{0, 50'000};
    nanosleep(&kNap, nullptr);
}

}  // namespace cairn::worker
