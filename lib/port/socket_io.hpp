// How a UringPort reaches its socket: all sends of a turn and one receive in one go, several sends by one
// io_uring_enter, or all by plain system calls where io_uring is not to be had.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lib/base/result.hpp"

namespace cairn::port {

// One sendmsg() or recvmsg(): what it returned, or -errno. The message and all it points to belong to the caller and
// stay as they are during exchange().
struct SocketMessage {
    msghdr header{};
    std::int32_t result = 0;

    // It may be sent later as it is: there was no room in the socket's buffer, or one before it found none.
    [[nodiscard]] bool found_no_room() const noexcept {
        return result == -EAGAIN || result == -ENOBUFS || result == -EINTR;
    }
};

enum class SocketMode : std::uint8_t {
    Defer,   // io_uring, work done inside the enter (SINGLE_ISSUER, DEFER_TASKRUN)
    Sqpoll,  // io_uring, a kernel thread submits: for machines with a core to spare
    Plain,   // sendmsg and recvmsg
};

class SocketIo {
public:
    // Not for Plain: the kernel may refuse (disabled by sysctl or seccomp, no memlock); the error says so. `sends_max`
    // bounds the messages per exchange. The socket outlives it. The first exchange() binds it to its thread.
    static Result<std::unique_ptr<SocketIo>> make_ring(int fd, SocketMode mode, std::uint32_t sends_max);
    static std::unique_ptr<SocketIo> make_plain(int fd);

    SocketIo() = default;
    SocketIo(const SocketIo&) = delete;
    SocketIo& operator=(const SocketIo&) = delete;
    virtual ~SocketIo() = default;

    // Sends and receives without waiting; every result is set when it returns. `receive` may be nullptr. Behind a send
    // that found no room no other is tried, so that they stay in their order.
    virtual void exchange(std::span<SocketMessage> sends, SocketMessage* receive) noexcept = 0;
    [[nodiscard]] virtual std::string describe() const = 0;
};

// What exchange() does, a system call for each message.
void exchange_by_calls(int fd, std::span<SocketMessage> sends, SocketMessage* receive) noexcept;

}  // namespace cairn::port
