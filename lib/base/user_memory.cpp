#include "lib/base/user_memory.hpp"

#include <pthread.h>

#include <csignal>

namespace cairn {

namespace {

// The handler reads these variables, so reaching them must not call a function. They are few bytes, for which the
// loader keeps room.
[[gnu::tls_model("initial-exec")]] constinit thread_local void** way_back = nullptr;
[[gnu::tls_model("initial-exec")]] constinit thread_local const void* last = nullptr;
[[gnu::tls_model("initial-exec")]] constinit thread_local bool may_fault = false;

// A fault whose signal the thread blocks ends the process. Programs often block all signals in their threads, but mean
// only signals that are sent.
[[gnu::noinline]] void let_fault() noexcept {
    sigset_t faults;
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    sigaddset(&faults, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
    may_fault = true;
}

}  // namespace

constinit std::atomic<bool> UserMemory::expected_{false};

// Uses the compiler's own setjmp, which saves three words and no signal mask.
[[gnu::noinline]] bool UserMemory::run_guarded(void (*access)(const void*), const void* it) noexcept {
    if (!may_fault) [[unlikely]] {
        let_fault();
    }
    void* back[5];
    if (__builtin_setjmp(back) != 0) {
        return false;
    }
    way_back = back;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    access(it);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    way_back = nullptr;
    return true;
}

[[gnu::noinline]] void UserMemory::on_fault(const void* address) noexcept {
    if (way_back != nullptr) {
        void** const to = way_back;
        way_back = nullptr;
        last = address;
        __builtin_longjmp(to, 1);
    }
}

const std::uint8_t* UserMemory::last_fault() noexcept {
    return static_cast<const std::uint8_t*>(last);
}

}  // namespace cairn
