// A doorbell wakes a sleeper from another process. Both processes map its word, and both have its descriptor.
#pragma once

#include <sys/eventfd.h>

#include <atomic>
#include <cstdint>

namespace cairn {

// Lies in memory that both sides map, one word for each side that rings. Zeroed memory is a word of a sleeper that is
// awake. A system call is made only while the sleeper sleeps. Whatever the other side writes here, it can only wake the
// sleeper or not wake it.
struct DoorbellWord {
    // Announces a sleep. The sleeper calls it before it looks a last time for work, and then sleeps.
    void begin_sleep() noexcept { asleep.exchange(1, std::memory_order_acq_rel); }
    // Returns false if the doorbell was rung since begin_sleep().
    bool end_sleep() noexcept { return asleep.exchange(0, std::memory_order_acq_rel) != 0; }
    // Returns true if the caller has to wake the sleeper. The side that rings calls it, after it has made the work that
    // the sleeper looks for. Pairs with begin_sleep(): the later of the two exchanges sees the other. Either this one
    // finds the sleeper asleep, or the sleeper finds the work that was made before.
    [[nodiscard]] bool must_wake() noexcept { return asleep.exchange(0, std::memory_order_acq_rel) != 0; }

    std::atomic<std::uint32_t> asleep{0};
};
static_assert(sizeof(DoorbellWord) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);

// Rings, and wakes a sleeper that waits on the eventfd `fd`. Returns true if the sleeper was asleep.
inline bool ring(DoorbellWord& word, int fd) noexcept {
    return word.must_wake() && eventfd_write(fd, 1) == 0;
}

}  // namespace cairn
