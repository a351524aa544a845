// System calls that are no cancellation points (pthreads). A thread that is cancelled in one would leave a lock held,
// or unwind through a function that must only return. Each does what the function of the same name does. The calls of
// the port are in shared/system_calls.cpp.
#pragma once

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>

namespace cairn::ibverbs {

// Keeps the thread from being cancelled in its scope.
class NoCancellation {
public:
    NoCancellation() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    NoCancellation(const NoCancellation&) = delete;
    NoCancellation& operator=(const NoCancellation&) = delete;
    ~NoCancellation() { pthread_setcancelstate(before_, nullptr); }

private:
    int before_ = 0;
};

}  // namespace cairn::ibverbs

namespace cairn::ibverbs::uncancelled {

inline int close(int fd) noexcept {
    return static_cast<int>(syscall(SYS_close, fd));
}
inline ssize_t write(int fd, const void* bytes, std::size_t count) noexcept {
    return syscall(SYS_write, fd, bytes, count);
}
// Reads without waiting, whatever the descriptor's mode.
inline ssize_t read_now(int fd, void* bytes, std::size_t count) noexcept {
    const iovec room{bytes, count};
    constexpr long kAtItsPosition = -1;
    return syscall(SYS_preadv2, fd, &room, 1L, kAtItsPosition, kAtItsPosition, RWF_NOWAIT);
}

}  // namespace cairn::ibverbs::uncancelled
