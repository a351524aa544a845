// System calls that are no cancellation points (pthreads): a thread that is cancelled in one would leave a lock behind.
// Each does what the function of the same name does. Those of the port are in shared/system_calls.cpp.
#pragma once

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace cairn::ibverbs::uncancelled {

inline ssize_t write(int fd, const void* bytes, std::size_t count) noexcept {
    return syscall(SYS_write, fd, bytes, count);
}
inline ssize_t read(int fd, void* bytes, std::size_t count) noexcept {
    return syscall(SYS_read, fd, bytes, count);
}
inline int poll(pollfd* waiting, nfds_t count, int milliseconds) noexcept {
    return static_cast<int>(syscall(SYS_poll, waiting, count, milliseconds));
}

}  // namespace cairn::ibverbs::uncancelled
