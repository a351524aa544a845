#include "lib/ibverbs/event_count.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "lib/base/monotonic_clock.hpp"
#include "lib/ibverbs/complaints.hpp"
#include "lib/ibverbs/guarded.hpp"
#include "lib/ibverbs/in_use.hpp"
#include "lib/ibverbs/interruptions.hpp"
#include "lib/ibverbs/uncancelled.hpp"

namespace cairn::ibverbs {

namespace {

// Returns once the descriptor is readable. Returns false, with errno, if a signal ended the sleep, as it would end a
// read(), or the descriptor is non-blocking. A cancellation point.
[[nodiscard]] bool await_readable(int fd) {
    if ((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0) {
        errno = EAGAIN;
        return false;
    }
    pollfd waiting{fd, POLLIN, 0};
    while (poll(&waiting, 1, -1) < 0) {
        const int reason = errno;
        if (reason != EINTR || Interruptions::look().end) {
            errno = reason;
            return false;
        }
    }
    return true;
}

// Returns whether the sleep is left to read(): an effect of a signal on poll() does not say what it would be on a
// read().
[[nodiscard]] bool is_left_to_read() noexcept {
    return Interruptions::lately(read_monotonic()).are_mixed();
}

}  // namespace

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
    // If the read fails, a reader has the count. It will find no event and wait again.
    std::uint64_t one = 0;
    static_cast<void>(uncancelled::read_now(fd, &one, sizeof(one)));
}

// A thread that is cancelled in read() may have taken a count, whose event is then lost. So it sleeps in poll() and
// takes the count with cancellation off. Between the two it looks at nothing of the program's, which may be gone. If
// that cannot be, it sleeps in read(), as before kernel 5.8.
bool EventCount::wait() {
    const int from = fd;
    for (;;) {
        std::uint64_t one = 0;
        pthread_testcancel();
        ssize_t got = uncancelled::read_now(from, &one, sizeof(one));
        int reason = errno;
        if (got < 0 && (reason == EOPNOTSUPP || (reason == EAGAIN && is_left_to_read()))) {
            got = read(from, &one, sizeof(one));
            reason = errno;
        }
        if (got >= 0 || reason != EAGAIN) {
            errno = got == 0 ? EIO : reason;  // EIO: the descriptor is of this process's parent
            return got == sizeof(one);
        }
        if (!await_readable(from)) {
            return false;
        }
    }
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
