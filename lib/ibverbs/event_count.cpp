#include "lib/ibverbs/event_count.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "lib/ibverbs/complaints.hpp"
#include "lib/ibverbs/guarded.hpp"
#include "lib/ibverbs/in_use.hpp"
#include "lib/ibverbs/uncancelled.hpp"

namespace cairn::ibverbs {

bool EventCount::open() noexcept {
    fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    if (fd < 0) {
        complain_of_descriptors();
        return false;
    }
    const int refused = result_of([this] {
        InUse::add(fd);
        return 0;
    });
    if (refused != 0) {
        uncancelled::close(std::exchange(fd, -1));
        errno = refused;
    }
    return refused == 0;
}

void EventCount::close() noexcept {
    InUse::remove(fd);
    uncancelled::close(std::exchange(fd, -1));
}

void EventCount::show() noexcept {
    const std::uint64_t count = std::exchange(not_shown, 0U);
    static_cast<void>(uncancelled::write(fd, &count, sizeof(count)));
}

void EventCount::take_back() noexcept {
    if (not_shown != 0) {
        --not_shown;
        return;
    }
    // Else a reader has it, which will find no event and wait again.
    std::uint64_t one = 0;
    static_cast<void>(uncancelled::read_now(fd, &one, sizeof(one)));
}

bool EventCount::wait() {
    std::uint64_t one = 0;
    const ssize_t got = read(fd, &one, sizeof(one));
    errno = got == 0 ? EIO : errno;  // the descriptor is of this process's parent
    return got == sizeof(one);
}

void EventsToShow::add(EventCount& count) noexcept {
    ++count.not_shown;
    if (!std::exchange(count.is_listed, true)) {
        count.next = std::exchange(first_, &count);
    }
}

void EventsToShow::forget(EventCount& count) noexcept {
    for (EventCount** link = &first_; *link != nullptr; link = &(*link)->next) {
        if (*link == &count) {
            *link = count.next;
            count.is_listed = false;
            return;
        }
    }
}

void EventsToShow::show_all() noexcept {
    while (first_ != nullptr) {
        EventCount& count = *first_;
        first_ = count.next;
        count.is_listed = false;
        if (count.not_shown != 0) {
            count.show();
        }
    }
}

}  // namespace cairn::ibverbs
