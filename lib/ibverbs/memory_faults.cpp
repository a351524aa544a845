#include "lib/ibverbs/memory_faults.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <mutex>

#include "lib/base/user_memory.hpp"
#include "lib/ibverbs/lock.hpp"

namespace cairn::ibverbs {

namespace {

// The program's handlers, which run after ours.
struct Programs {
    struct sigaction latest {};
    struct sigaction earlier {};  // the handler that it replaced; it may pass on to that one faults that are not its
                                  // own
};

// The programs' handlers, whole at any moment, for faults of other threads and for children of fork(): a change is
// written to the other copy.
struct Caught {
    int signal;
    std::array<Programs, 2> programs{};
    std::atomic<unsigned> current{0};  // of `programs`
};
std::array<Caught, 2> caught{{{SIGSEGV}, {SIGBUS}}};
constinit Lock changing;  // taken with no other lock held

// Returns how often the signal was passed on before. A handler that passes back to us the signals that we pass on to it
// would go on for ever. The thread's last call does not show that, since handlers jump out. So the signal itself is
// marked, in room that the kernel leaves zero.
[[nodiscard]] int count_passes(siginfo_t& info) noexcept {
    constexpr int kMark = 0x6361726e;
    constexpr std::size_t kAt = sizeof(siginfo_t) - sizeof(kMark);
    auto* const room = reinterpret_cast<char*>(&info) + kAt;
    int mark = 0;
    std::memcpy(&mark, room, sizeof(mark));
    const int passes = mark == kMark || mark == kMark + 1 ? mark - kMark + 1 : 0;
    mark = kMark + std::min(passes, 1);
    std::memcpy(room, &mark, sizeof(mark));
    return passes;
}

[[nodiscard]] bool is_sent(const siginfo_t& info) noexcept {
    return info.si_code <= 0;
}

// Restores the default action. The fault comes again when the handler returns, and then ends the program as it would
// have without us. A signal that was sent is sent again.
void restore_default(int signal, const siginfo_t& info) noexcept {
    struct sigaction plain {};
    plain.sa_handler = SIG_DFL;
    sigaction(signal, &plain, nullptr);
    if (is_sent(info)) {
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
    }
}

// Passes a fault on. The handler that was set last is called first. A fault that it passes back to us is for the
// handler that it found, which is called next.
void pass_on(const Caught& to, siginfo_t* info, void* context) noexcept {
    const Programs all = to.programs[to.current.load(std::memory_order_acquire)];
    const int passes = count_passes(*info);
    const struct sigaction& programs = passes == 0 ? all.latest : all.earlier;
    if (programs.sa_handler == SIG_IGN && is_sent(*info)) {
        return;  // the kernel ignores no fault
    }
    const bool has_handler = programs.sa_handler != SIG_DFL && programs.sa_handler != SIG_IGN;
    if (!has_handler || passes > 1) {
        restore_default(to.signal, *info);
        return;
    }
    // The mask is as the kernel would set it. A handler that jumps out leaves the signals as it would have without us.
    sigset_t blocked = programs.sa_mask;
    if ((programs.sa_flags & SA_NODEFER) == 0) {
        sigaddset(&blocked, to.signal);
    }
    sigset_t before;
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    if ((programs.sa_flags & SA_SIGINFO) != 0) {
        programs.sa_sigaction(to.signal, info, context);
    } else {
        programs.sa_handler(to.signal);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void on_signal(int signal, siginfo_t* info, void* context) noexcept {
    if (!is_sent(*info)) {
        UserMemory::on_fault(info->si_addr);  // does not return if the fault is the engine's
    }
    for (const Caught& each : caught) {
        if (each.signal == signal) {
            pass_on(each, info, context);
        }
    }
}

void put_before(Caught& one) noexcept {
    struct sigaction now {};
    if (sigaction(one.signal, nullptr, &now) != 0 || now.sa_sigaction == on_signal) {
        return;
    }
    struct sigaction ours {};
    ours.sa_sigaction = on_signal;
    // The engine leaves the handler without returning, so no signal may be blocked then. The stack is the one that the
    // program's handler expects; its signals are blocked when it is called.
    sigemptyset(&ours.sa_mask);
    ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    const unsigned current = one.current.load(std::memory_order_relaxed);
    const Programs& before = one.programs[current];
    const bool is_same = now.sa_sigaction == before.latest.sa_sigaction;  // it was set once more
    one.programs[1 - current] = {now, is_same ? before.earlier : before.latest};
    one.current.store(1 - current, std::memory_order_release);
    sigaction(one.signal, &ours, nullptr);
}

}  // namespace

void catch_memory_faults() noexcept {
    const std::lock_guard hold(changing);
    for (Caught& each : caught) {
        put_before(each);
    }
    UserMemory::expect_faults();
}

void orphan_memory_faults() noexcept {
    changing.free_in_child();
}

}  // namespace cairn::ibverbs
