// The system calls that the port makes under the adapter's lock, for this library alone: here they are no cancellation
// points.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
    return syscall(SYS_sendmsg, fd, message, flags);
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
    return syscall(SYS_recvmsg, fd, message, flags);
}
}
