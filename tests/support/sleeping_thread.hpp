// A thread that sleeps in a call, for tests that end the sleep.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace cairn::test {

// Returns once the thread sleeps or has ended. The thread stores its number itself.
inline void await_sleep(const std::atomic<pid_t>& thread) {
    const auto sleeps = [&thread] {
        std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
        const std::string text((std::istreambuf_iterator<char>(stat)), std::istreambuf_iterator<char>());
        return thread != 0 && (text.empty() || text.find(") S ") != std::string::npos);
    };
    while (!sleeps()) {
        std::this_thread::yield();
    }
}

// Makes the calling thread run on this CPU, after all other threads there.
inline void be_last_on(int cpu) {
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(static_cast<std::size_t>(cpu), &here);
    sched_setaffinity(0, sizeof(here), &here);
    const sched_param last{};
    sched_setscheduler(0, SCHED_IDLE, &last);
}

}  // namespace cairn::test
