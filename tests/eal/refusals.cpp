// A preloaded library. It makes interfaces refuse GSO, so that sendmsg() with UDP_SEGMENT fails. It makes the kernel
// refuse programs that choose among sockets.
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <cerrno>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags) {
    for (cmsghdr* each = CMSG_FIRSTHDR(message); each != nullptr;
         each = CMSG_NXTHDR(const_cast<msghdr*>(message), each)) {
        if (each->cmsg_level == IPPROTO_UDP && each->cmsg_type == UDP_SEGMENT) {
            errno = EIO;
            return -1;
        }
    }
    static const auto kernels = reinterpret_cast<decltype(&sendmsg)>(dlsym(RTLD_NEXT, "sendmsg"));
    return kernels(fd, message, flags);
}

extern "C" int setsockopt(int fd, int level, int option, const void* value, socklen_t bytes) noexcept {
    if (level == SOL_SOCKET && option == SO_ATTACH_REUSEPORT_CBPF) {
        errno = EPERM;
        return -1;
    }
    static const auto kernels = reinterpret_cast<decltype(&setsockopt)>(dlsym(RTLD_NEXT, "setsockopt"));
    return kernels(fd, level, option, value, bytes);
}
