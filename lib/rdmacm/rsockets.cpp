// The rsockets of the distribution's librdmacm, by their public names.
#include <fcntl.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <sys/select.h>

#include <atomic>
#include <cstdarg>

#include "lib/rdmacm/distribution.hpp"
#include "lib/rdmacm/exports.hpp"

namespace cairn::rdmacm {

namespace {

// A function of the distribution's library, which is looked up once. Without the library a call returns -1, with errno.
template <class Function>
class Below {
public:
    explicit constexpr Below(const char* name) noexcept : name_(name) {}

    template <class... Arguments>
    auto operator()(Arguments... arguments) {
        Function* const function = find();
        using Result = decltype(function(arguments...));
        return function == nullptr ? static_cast<Result>(-1) : function(arguments...);
    }

private:
    [[nodiscard]] Function* find() noexcept {
        void* found = found_.load(std::memory_order_relaxed);
        if (found == nullptr) {
            found = Distribution::get().function(name_);
            found_.store(found, std::memory_order_relaxed);
        }
        return reinterpret_cast<Function*>(found);
    }

    const char* name_;
    std::atomic<void*> found_{nullptr};
};

constinit Below<decltype(raccept)> raccept_below("raccept");
constinit Below<decltype(rbind)> rbind_below("rbind");
constinit Below<decltype(rclose)> rclose_below("rclose");
constinit Below<decltype(rconnect)> rconnect_below("rconnect");
constinit Below<decltype(rgetpeername)> rgetpeername_below("rgetpeername");
constinit Below<decltype(rgetsockname)> rgetsockname_below("rgetsockname");
constinit Below<decltype(rgetsockopt)> rgetsockopt_below("rgetsockopt");
constinit Below<decltype(riomap)> riomap_below("riomap");
constinit Below<decltype(riounmap)> riounmap_below("riounmap");
constinit Below<decltype(riowrite)> riowrite_below("riowrite");
constinit Below<decltype(rlisten)> rlisten_below("rlisten");
constinit Below<decltype(rpoll)> rpoll_below("rpoll");
constinit Below<decltype(rread)> rread_below("rread");
constinit Below<decltype(rreadv)> rreadv_below("rreadv");
constinit Below<decltype(rrecv)> rrecv_below("rrecv");
constinit Below<decltype(rrecvfrom)> rrecvfrom_below("rrecvfrom");
constinit Below<decltype(rrecvmsg)> rrecvmsg_below("rrecvmsg");
constinit Below<decltype(rselect)> rselect_below("rselect");
constinit Below<decltype(rsend)> rsend_below("rsend");
constinit Below<decltype(rsendmsg)> rsendmsg_below("rsendmsg");
constinit Below<decltype(rsendto)> rsendto_below("rsendto");
constinit Below<decltype(rsetsockopt)> rsetsockopt_below("rsetsockopt");
constinit Below<decltype(rshutdown)> rshutdown_below("rshutdown");
constinit Below<decltype(rsocket)> rsocket_below("rsocket");
constinit Below<decltype(rwrite)> rwrite_below("rwrite");
constinit Below<decltype(rwritev)> rwritev_below("rwritev");
constinit Below<decltype(rfcntl)> rfcntl_below("rfcntl");

// Returns false for a process that has no rsocket: all its descriptors are the kernel's.
[[nodiscard]] bool has_rsockets() noexcept {
    return Distribution::find() != nullptr;
}

}  // namespace

}  // namespace cairn::rdmacm

using namespace cairn::rdmacm;

int cairn_rsocket(int domain, int type, int protocol) {
    return rsocket_below(domain, type, protocol);
}

int cairn_rbind(int socket, const sockaddr* address, socklen_t bytes) {
    return rbind_below(socket, address, bytes);
}

int cairn_rlisten(int socket, int backlog) {
    return rlisten_below(socket, backlog);
}

int cairn_raccept(int socket, sockaddr* address, socklen_t* bytes) {
    return raccept_below(socket, address, bytes);
}

int cairn_rconnect(int socket, const sockaddr* address, socklen_t bytes) {
    return rconnect_below(socket, address, bytes);
}

int cairn_rshutdown(int socket, int how) {
    return rshutdown_below(socket, how);
}

int cairn_rclose(int socket) {
    return rclose_below(socket);
}

ssize_t cairn_rrecv(int socket, void* out, std::size_t bytes, int flags) {
    return rrecv_below(socket, out, bytes, flags);
}

ssize_t cairn_rrecvfrom(int socket, void* out, std::size_t bytes, int flags, sockaddr* from, socklen_t* from_bytes) {
    return rrecvfrom_below(socket, out, bytes, flags, from, from_bytes);
}

ssize_t cairn_rrecvmsg(int socket, msghdr* message, int flags) {
    return rrecvmsg_below(socket, message, flags);
}

ssize_t cairn_rsend(int socket, const void* from, std::size_t bytes, int flags) {
    return rsend_below(socket, from, bytes, flags);
}

ssize_t cairn_rsendto(int socket, const void* from, std::size_t bytes, int flags, const sockaddr* to,
                      socklen_t to_bytes) {
    return rsendto_below(socket, from, bytes, flags, to, to_bytes);
}

ssize_t cairn_rsendmsg(int socket, const msghdr* message, int flags) {
    return rsendmsg_below(socket, message, flags);
}

ssize_t cairn_rread(int socket, void* out, std::size_t bytes) {
    return rread_below(socket, out, bytes);
}

ssize_t cairn_rreadv(int socket, const iovec* pieces, int count) {
    return rreadv_below(socket, pieces, count);
}

ssize_t cairn_rwrite(int socket, const void* from, std::size_t bytes) {
    return rwrite_below(socket, from, bytes);
}

ssize_t cairn_rwritev(int socket, const iovec* pieces, int count) {
    return rwritev_below(socket, pieces, count);
}

int cairn_rpoll(pollfd* descriptors, nfds_t count, int timeout) {
    return has_rsockets() ? rpoll_below(descriptors, count, timeout) : poll(descriptors, count, timeout);
}

int cairn_rselect(int count, fd_set* readable, fd_set* writable, fd_set* exceptional, timeval* timeout) {
    return has_rsockets() ? rselect_below(count, readable, writable, exceptional, timeout)
                          : select(count, readable, writable, exceptional, timeout);
}

int cairn_rgetpeername(int socket, sockaddr* address, socklen_t* bytes) {
    return rgetpeername_below(socket, address, bytes);
}

int cairn_rgetsockname(int socket, sockaddr* address, socklen_t* bytes) {
    return rgetsockname_below(socket, address, bytes);
}

int cairn_rsetsockopt(int socket, int level, int name, const void* value, socklen_t bytes) {
    return rsetsockopt_below(socket, level, name, value, bytes);
}

int cairn_rgetsockopt(int socket, int level, int name, void* value, socklen_t* bytes) {
    return rgetsockopt_below(socket, level, name, value, bytes);
}

int cairn_rfcntl(int socket, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    const long argument = command == F_GETFL || command == F_GETFD ? 0L : va_arg(arguments, long);
    va_end(arguments);
    return rfcntl_below(socket, command, argument);
}

off_t cairn_riomap(int socket, void* memory, std::size_t bytes, int protection, int flags, off_t offset) {
    return riomap_below(socket, memory, bytes, protection, flags, offset);
}

int cairn_riounmap(int socket, void* memory, std::size_t bytes) {
    return riounmap_below(socket, memory, bytes);
}

std::size_t cairn_riowrite(int socket, const void* from, std::size_t bytes, off_t offset, int flags) {
    return riowrite_below(socket, from, bytes, offset, flags);
}
