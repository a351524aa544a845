#include "lib/base/wakeup.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace cairn {

Result<std::unique_ptr<Wakeup>> Wakeup::create() {
    const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0) {
        return Error{std::string("cannot make a descriptor to wake a worker by: ") + std::strerror(errno),
                     "raise the limit of open files (ulimit -n)"};
    }
    return std::unique_ptr<Wakeup>(new Wakeup(fd));
}

Wakeup::~Wakeup() {
    close(fd_);
}

void Wakeup::end_sleep() noexcept {
    sleeps_ = false;
    // If the flag is still up, the owner was not woken. Otherwise the descriptor is readable or will be, perhaps only
    // after the next sleep has begun.
    owed_ += word_.end_sleep() ? 0U : 1U;
    eventfd_t count = 0;
    if (owed_ != 0 && eventfd_read(fd_, &count) == 0) {
        owed_ -= count;
    }
}

}  // namespace cairn
