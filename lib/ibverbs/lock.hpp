// The lock of an adapter: the thread that holds it is "the worker".
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

#include "lib/base/assert.hpp"
#include "lib/base/monotonic_clock.hpp"

namespace cairn::ibverbs {

// One compare-and-swap takes it, one exchange gives it back. A waiting thread spins for about as long as a short turn
// takes, and then sleeps. The lock is held for one turn of the worker at most. If a signal handler interrupts the
// holder in a turn, it is held for as long as the handler runs. Taking it is no cancellation point: a thread that is
// cancelled never holds it.
class Lock {
public:
    Lock() = default;
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

    [[nodiscard]] bool try_lock() noexcept {
        std::uint32_t free = kFree;
        return word_.compare_exchange_strong(free, kHeld, std::memory_order_acquire, std::memory_order_relaxed);
    }
    void lock() noexcept {
        if (!try_lock()) [[unlikely]] {
            wait();
        }
    }
    // Spins for a while. Returns false if the lock was not free meanwhile.
    [[nodiscard]] bool lock_soon() noexcept {
        for (int spins = 0; spins < kSpins; ++spins) {
            if (word_.load(std::memory_order_relaxed) == kFree && try_lock()) {
                return true;
            }
            __builtin_ia32_pause();
        }
        return false;
    }
    // Takes the lock, and naps between attempts. Returns false if the lock was not free by the deadline; at least one
    // attempt is made. Perhaps the caller interrupted the thread that holds it. A caller that takes several locks has
    // one deadline for all.
    [[nodiscard]] bool lock_until(Instant deadline) noexcept {
        constexpr timespec kNap{0, 100'000};
        bool has = lock_soon();
        while (!has && read_monotonic() < deadline) {
            syscall(SYS_nanosleep, &kNap, nullptr);
            has = lock_soon();
        }
        return has;
    }
    void unlock() noexcept {
        const std::uint32_t was = word_.exchange(kFree, std::memory_order_release);
        CAIRN_ASSERT(was != kFree);
        if (was == kAwaited) [[unlikely]] {
            futex(FUTEX_WAKE_PRIVATE, 1);
        }
    }

    // Returns whether a thread sleeps to wait for the lock, which the caller holds, or slept until the caller got it.
    [[nodiscard]] bool is_awaited() const noexcept { return word_.load(std::memory_order_relaxed) == kAwaited; }

    // Frees the lock in a child of fork(), which has one thread: the thread that held it is not here.
    void free_in_child() noexcept { word_.store(kFree, std::memory_order_relaxed); }

private:
    enum : std::uint32_t { kFree, kHeld, kAwaited };
    static constexpr int kSpins = 64;

    [[gnu::noinline]] void wait() noexcept {
        if (lock_soon()) {
            return;
        }
        while (word_.exchange(kAwaited, std::memory_order_acquire) != kFree) {
            futex(FUTEX_WAIT_PRIVATE, kAwaited);
        }
    }
    void futex(int operation, std::uint32_t value) noexcept {
        static_assert(sizeof(word_) == sizeof(std::uint32_t));
        syscall(SYS_futex, &word_, operation, value, nullptr, nullptr, 0);
    }

    std::atomic<std::uint32_t> word_{kFree};
};

}  // namespace cairn::ibverbs
