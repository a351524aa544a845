#include "lib/ibverbs/memory_faults.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <mutex>

#include "lib/base/user_memory.hpp"

namespace cairn::ibverbs {

namespace {

struct Caught {
    int signal;
    struct sigaction programs {};  // its handler, which ours stands before
    std::atomic<int> readable{0};  // `programs` is complete
};
std::array<Caught, 2> caught{{{SIGSEGV}, {SIGBUS}}};
std::mutex changing;  // guards `programs` against other writers
[[gnu::tls_model("initial-exec")]] constinit thread_local bool is_passing_on = false;

// The fault comes again when the handler returns, and then ends the program as it would have without us.
void restore_default(int signal) noexcept {
    struct sigaction plain {};
    plain.sa_handler = SIG_DFL;
    sigaction(signal, &plain, nullptr);
}

void pass_on(const Caught& to, siginfo_t* info, void* context) noexcept {
    const struct sigaction& programs = to.programs;
    const bool has_handler = to.readable.load(std::memory_order_acquire) != 0 && programs.sa_handler != SIG_DFL &&
                             programs.sa_handler != SIG_IGN;
    // A handler that passes on to us what we pass on to it would go on for ever.
    if (!has_handler || is_passing_on) {
        restore_default(to.signal);
        return;
    }
    is_passing_on = true;
    if ((programs.sa_flags & SA_SIGINFO) != 0) {
        programs.sa_sigaction(to.signal, info, context);
    } else {
        programs.sa_handler(to.signal);
    }
    is_passing_on = false;
}

void on_signal(int signal, siginfo_t* info, void* context) noexcept {
    UserMemory::on_fault(info->si_addr);  // does not return if the fault is the engine's
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
    // The program's mask and stack are those that its handler expects. The engine leaves the handler without returning.
    ours.sa_mask = now.sa_mask;
    ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    one.readable.store(0, std::memory_order_release);
    one.programs = now;
    one.readable.store(1, std::memory_order_release);
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

}  // namespace cairn::ibverbs
