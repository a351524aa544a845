// Access to memory that belongs to the user of a library. The user may unmap it at any time.
#pragma once

#include <atomic>
#include <cstdint>

namespace cairn {

// A process that expects faults has a handler of SIGSEGV and SIGBUS that calls on_fault(). An access that faults then
// ends there, and its caller learns of it. If no faults are expected, an access costs one comparison more than without
// this class.
class UserMemory {
public:
    // Makes all later accesses guarded. Any thread may call it, more than once.
    static void expect_faults() noexcept { expected_.store(true, std::memory_order_relaxed); }

    // Calls `access`. Returns false if it touched memory that is not there; its effects before the fault remain. If a
    // thread blocks the signals of faults, its first access unblocks them by one system call. `access` only copies: it
    // owns nothing that needs a destructor, and calls nothing that may be left halfway.
    template <class Access>
    [[nodiscard]] static bool run(const Access& access) noexcept {
        if (!expected_.load(std::memory_order_relaxed)) [[likely]] {
            access();
            return true;
        }
        return run_guarded([](const void* it) { (*static_cast<const Access*>(it))(); }, &access);
    }
    // Ends the access that touched `address`, if the thread is in run(): then it does not return. A signal handler that
    // does not block its signal calls it.
    static void on_fault(const void* address) noexcept;
    // Returns the address of this thread's last access that failed.
    [[nodiscard]] static const std::uint8_t* last_fault() noexcept;

private:
    static bool run_guarded(void (*access)(const void*), const void* it) noexcept;

    static std::atomic<bool> expected_;
};

}  // namespace cairn
