#include "lib/port/write_gate.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>

namespace cairn::port {

namespace {

constinit std::atomic<int> inside{0};  // the number of threads inside
constinit std::atomic<bool> ends{false};
// True while this thread is inside. A signal that interrupts this thread does not wait for it: the kernel has ended its
// write by then.
[[gnu::tls_model("initial-exec")]] constinit thread_local std::atomic<bool> is_inside{false};

// A disk that takes longer may have its last frame cut.
constexpr int kNaps = 1000;
constexpr timespec kNap{0, 100'000};

void end_between_writes(int number) noexcept {
    ends.store(true);
    const int own = is_inside.load(std::memory_order_relaxed) ? 1 : 0;
    for (int naps = 0; inside.load() > own && naps < kNaps; ++naps) {
        syscall(SYS_nanosleep, &kNap, nullptr);
    }
    std::signal(number, SIG_DFL);
    std::raise(number);  // is delivered when this handler returns
}

[[nodiscard]] bool enter() noexcept {
    inside.fetch_add(1);
    is_inside.store(true, std::memory_order_relaxed);
    return !ends.load();
}

}  // namespace

void WriteGate::guard() noexcept {
    for (const int each : {SIGHUP, SIGINT, SIGTERM}) {
        struct sigaction set {};
        if (sigaction(each, nullptr, &set) == 0 && (set.sa_flags & SA_SIGINFO) == 0 && set.sa_handler == SIG_DFL) {
            set = {};
            set.sa_handler = end_between_writes;
            set.sa_flags = SA_RESTART;
            sigaction(each, &set, nullptr);
        }
    }
}

WriteGate::WriteGate() noexcept : is_open_(enter()) {}

WriteGate::~WriteGate() {
    is_inside.store(false, std::memory_order_relaxed);
    inside.fetch_sub(1);
}

}  // namespace cairn::port
