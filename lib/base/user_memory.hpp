// Access to memory that belongs to the user of a library, who may unmap it at any time.
#pragma once

#include <atomic>
#include <cstdint>

namespace cairn {

// A process that expects faults has a handler of SIGSEGV and SIGBUS that calls on_fault(). Then an access that faults
// ends there and says so. Where none are expected, an access costs a comparison more than without this class.
class UserMemory {
public:
    // From now on. May be called by any thread, more than once.
    static void expect_faults() noexcept { expected_.store(true, std::memory_order_relaxed); }

    // Calls `access`. Returns false if it touched memory that is not there; what it did before that stays done.
    // A thread that blocks the signals of faults takes them from its first access on: one system call, once.
    // `access` owns nothing that needs a destructor, and calls nothing that may be left halfway: it copies.
    template <class Access>
    [[nodiscard]] static bool run(const Access& access) noexcept {
        if (!expected_.load(std::memory_order_relaxed)) [[likely]] {
            access();
            return true;
        }
        return run_guarded([](const void* it) { (*static_cast<const Access*>(it))(); }, &access);
    }
    // Called in a signal handler that does not block its signal: the thread touched `address`. Does not return if the
    // thread is in run().
    static void on_fault(const void* address) noexcept;
    // Returns where the last access of this thread failed that did.
    [[nodiscard]] static const std::uint8_t* last_fault() noexcept;

private:
    static bool run_guarded(void (*access)(const void*), const void* it) noexcept;

    static std::atomic<bool> expected_;
};

}  // namespace cairn
