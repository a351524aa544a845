#include "lib/port/socket_epoll.hpp"

#include <sys/epoll.h>
#include <unistd.h>

namespace cairn::port {

void SocketEpoll::open(int socket) noexcept {
    fd_ = epoll_create1(EPOLL_CLOEXEC);
    socket_ = socket;
    wants_room_ = false;
    add(socket);
}

void SocketEpoll::add(int other) noexcept {
    epoll_event event{};
    event.events = EPOLLIN;
    if (fd_ >= 0 && epoll_ctl(fd_, EPOLL_CTL_ADD, other, &event) != 0) {
        close();
    }
}

void SocketEpoll::change() noexcept {
    epoll_event event{};
    event.events = wants_room_ ? EPOLLIN | EPOLLOUT : EPOLLIN;
    (void)epoll_ctl(fd_, EPOLL_CTL_MOD, socket_, &event);
}

void SocketEpoll::close() noexcept {
    if (fd_ >= 0) {
        ::close(std::exchange(fd_, -1));
    }
}

}  // namespace cairn::port
