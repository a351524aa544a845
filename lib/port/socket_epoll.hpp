// The descriptor of a socket port for event loops. It is readable when the port's worker has something to do in a turn.
#pragma once

#include <utility>

namespace cairn::port {

class SocketEpoll {
public:
    SocketEpoll() = default;
    SocketEpoll(const SocketEpoll&) = delete;
    SocketEpoll& operator=(const SocketEpoll&) = delete;
    ~SocketEpoll() { close(); }

    // Returns the descriptor; -1 while it is not open, or if the process has no descriptor left.
    [[nodiscard]] int fd() const noexcept { return fd_; }
    // Opens the descriptor. It is readable if `socket` is.
    void open(int socket) noexcept;
    // Makes the descriptor also readable if `other` is. Does nothing while it is not open. A descriptor that is closed
    // leaves by itself.
    void add(int other) noexcept;
    // Chooses if the descriptor is also readable when the first socket's buffer has room. Makes a system call only if
    // the choice changes.
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
