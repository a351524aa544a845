// A descriptor that counts events: each read takes one, and it is readable while one is left.
#pragma once

#include <cstdint>

namespace cairn::ibverbs {

// Programs sleep on the descriptor in poll() of their own, and make it non-blocking. The adapter's lock guards the
// rest.
struct EventCount {
    int fd = -1;                  // an eventfd of EFD_SEMAPHORE
    std::uint32_t not_shown = 0;  // events that the descriptor does not count yet
    bool is_listed = false;       // in the list of those that have such events
    EventCount* next = nullptr;   // in that list

    // Opens the descriptor. Returns false, with errno, if no descriptor is left, which is told.
    [[nodiscard]] bool open() noexcept;
    void close() noexcept;
    // Makes the descriptor count them.
    void show() noexcept;
    // An event came, and the descriptor counts it at once.
    void show_one() noexcept {
        ++not_shown;
        show();
    }
    // Takes back an event that nobody will find.
    void take_back() noexcept;
    // Waits for an event, unless the descriptor is non-blocking, and takes it. Returns false, with errno;
    // EIO: the descriptor is of this process's parent. A cancellation point; the lock is not held.
    [[nodiscard]] bool wait();
};

// The descriptors that have something to show. The adapter's lock guards it.
class EventsToShow {
public:
    // An event came that the descriptor does not show yet.
    void add(EventCount& count) noexcept;
    // Its events are not to be shown any more.
    void forget(EventCount& count) noexcept;
    void show_all() noexcept;

private:
    EventCount* first_ = nullptr;
};

}  // namespace cairn::ibverbs
