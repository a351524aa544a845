// System calls that are no cancellation points (pthreads): a thread that is cancelled in one would leave a lock behind.
// Each does what the function of the same name does. Those of the port are in shared/system_calls.cpp.
#pragma once

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>

namespace cairn::ibverbs::uncancelled {

inline ssize_t write(int fd, const void* bytes, std::size_t count) noexcept {
    return syscall(SYS_write, fd, bytes, count);
}
// Does not wait, whatever the descriptor's mode.
inline ssize_t read_now(int fd, void* bytes, std::size_t count) noexcept {
    const iovec room{bytes, count};
    constexpr long kAtItsPosition = -1;
    return syscall(SYS_preadv2, fd, &room, 1L, kAtItsPosition, kAtItsPosition, RWF_NOWAIT);
}

}  // namespace cairn::ibverbs::uncancelled
