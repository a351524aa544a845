// The descriptor of a socket port for event loops: readable when a turn of its worker has something to do.
#pragma once

#include <utility>

namespace cairn::port {

class SocketEpoll {
public:
    SocketEpoll() = default;
    SocketEpoll(const SocketEpoll&) = delete;
    SocketEpoll& operator=(const SocketEpoll&) = delete;
    ~SocketEpoll() { close(); }

    // -1 while it is not open, or when the process has no descriptor left.
    [[nodiscard]] int fd() const noexcept { return fd_; }
    // Readable from now on when the socket is.
    void open(int socket) noexcept;
    // The same for others; nothing while it is not open. A descriptor that is closed leaves by itself.
    void add(int other) noexcept;
    // Readable also when there is room in the first socket's buffer. A system call only where that changes.
    void want_room(bool wanted) noexcept {
        if (fd_ >= 0 && std::exchange(wants_room_, wanted) != wanted) {
            change();
        }
    }

private:
    void change() noexcept;
    void close() noexcept;

    int fd_ = -1;
    int socket_ = -1;
    bool wants_room_ = false;
};

}  // namespace cairn::port
