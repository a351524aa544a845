#include "fs/daemon/meeting_place.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace cairn::fs {

namespace {

constexpr const char* kRemedy = "name a place that this user may write to: --shm-prefix FOLDER/NAME";

Error cannot(const char* what, const std::string& path) {
    return {fmt::format("cannot {} '{}': {}", what, path, std::strerror(errno)), kRemedy};
}

std::string holder_of(int fd) {
    std::array<char, 32> text{};
    const ssize_t bytes = ::pread(fd, text.data(), text.size() - 1, 0);
    const std::string pid(text.data(), static_cast<std::size_t>(bytes > 0 ? bytes : 0));
    return pid.substr(0, pid.find('\n'));
}

constexpr int kPassRights = 83;  // SO_PASSRIGHTS; accepted connections inherit it

}  // namespace

Result<MeetingPlace> MeetingPlace::open(const std::string& prefix, mode_t mode) {
    MeetingPlace place(prefix);
    if (place.socket_path_.size() >= sizeof(sockaddr_un::sun_path)) {
        return Error{fmt::format("'{}' is too long for a socket", place.socket_path_),
                     fmt::format("give a --shm-prefix of at most {} bytes",
                                 sizeof(sockaddr_un::sun_path) - 1 - std::strlen(".sock"))};
    }
    if (const Status locked = place.lock(); !locked.ok()) {
        return locked.error();
    }
    if (const Status listens = place.listen(mode); !listens.ok()) {
        return listens.error();
    }
    return place;
}

Status MeetingPlace::lock() {
    lock_ = OwnedFd(::open(lock_path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!lock_.is_open()) {
        return cannot("open", lock_path_);
    }
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) {
            return cannot("lock", lock_path_);
        }
        return Error{fmt::format("'{}' is held by another daemon, process {}", lock_path_, holder_of(lock_.get())),
                     "end that one, or give this one another --shm-prefix"};
    }
    const std::string pid = fmt::format("{}\n", ::getpid());
    if (::ftruncate(lock_.get(), 0) != 0 || ::pwrite(lock_.get(), pid.data(), pid.size(), 0) < 0) {
        return cannot("write", lock_path_);
    }
    return Nothing{};
}

// The holder of the lock owns the socket's name. A file there is a dead daemon's.
Status MeetingPlace::listen(mode_t mode) {
    struct stat facts {};
    if (::lstat(socket_path_.c_str(), &facts) == 0) {
        if (!S_ISSOCK(facts.st_mode)) {
            return Error{fmt::format("'{}' is no socket", socket_path_), "remove it, or give another --shm-prefix"};
        }
        ::unlink(socket_path_.c_str());
    }
    OwnedFd made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!made.is_open()) {
        return cannot("make", socket_path_);
    }
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, socket_path_.c_str(), socket_path_.size() + 1);
    // Clients send no descriptors. A descriptor that is received must be closed, and a hostile client can make that
    // take long (SO_LINGER). Kernels before 6.16 do not know the option, and close descriptors that come along.
    const int off = 0;
    ::setsockopt(made.get(), SOL_SOCKET, kPassRights, &off, sizeof(off));
    if (::bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        return cannot("make", socket_path_);
    }
    socket_ = std::move(made);  // from here on this object removes the file
    if (::chmod(socket_path_.c_str(), mode) != 0 || ::listen(socket_.get(), SOMAXCONN) != 0) {
        return cannot("listen at", socket_path_);
    }
    return Nothing{};
}

// Removes the file before the lock ends, so no other daemon can have made a socket there.
MeetingPlace::~MeetingPlace() {
    if (socket_.is_open()) {
        ::unlink(socket_path_.c_str());
    }
}

}  // namespace cairn::fs
