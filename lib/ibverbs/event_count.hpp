// A descriptor that counts events: each read takes one, and it is readable while one is left.
#pragma once

#include <cstdint>

namespace cairn::ibverbs {

// Programs sleep on the descriptor in their own poll(), and make it non-blocking. The adapter's lock guards the rest.
struct EventCount {
    int fd = -1;                  // an eventfd of EFD_SEMAPHORE
    std::uint32_t not_shown = 0;  // events that the descriptor does not count yet
    bool is_listed = false;       // in the list of those that have such events
    EventCount* next = nullptr;   // in that list

    // Opens the descriptor. Returns false, with errno, if no descriptor is left; that is reported on stderr.
    [[nodiscard]] bool open() noexcept;
    void close() noexcept;
    // Makes the descriptor count the events that it does not show yet.
    void show() noexcept;
    // Adds an event, which the descriptor counts at once.
    void show_one() noexcept {
        ++not_shown;
        show();
    }
    // Takes back an event that is void.
    void take_back() noexcept;
    // Waits for an event, unless the descriptor is non-blocking, and takes it. Returns false, with errno. EIO: the
    // descriptor is of this process's parent. A cancellation point. The caller does not hold the lock.
    [[nodiscard]] bool wait();
};

// The descriptors that have events to show. The adapter's lock guards it.
class EventsToShow {
public:
    // Adds an event that the descriptor does not show yet.
    void add(EventCount& count) noexcept;
    // Drops the events of `count`, which are not to be shown any more.
    void forget(EventCount& count) noexcept;
    void show_all() noexcept;

private:
    EventCount* first_ = nullptr;
};

}  // namespace cairn::ibverbs
