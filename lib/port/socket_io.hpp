// How a UringPort reaches its socket: all sends of a turn and one receive in one go. With io_uring, one io_uring_enter
// does several sends. Where io_uring is not available, each message is a plain system call.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lib/base/result.hpp"

namespace cairn::port {

// One sendmsg() or recvmsg(). `result` is its return value, or -errno. The caller owns the message and all that it
// points to, and leaves them unchanged during exchange().
struct SocketMessage {
    msghdr header{};
    std::int32_t result = 0;

    // Returns true if the message may be sent again later, unchanged: the socket's buffer had no room for it or for an
    // earlier one.
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
    // Makes a SocketIo for the modes with io_uring. Errors: the kernel refuses a ring (disabled by sysctl or seccomp,
    // no memlock), with the reason in the text. `sends_max` bounds the messages per exchange. The socket outlives the
    // object. The first exchange() binds it to its thread.
    static Result<std::unique_ptr<SocketIo>> make_ring(int fd, SocketMode mode, std::uint32_t sends_max);
    static std::unique_ptr<SocketIo> make_plain(int fd);

    SocketIo() = default;
    SocketIo(const SocketIo&) = delete;
    SocketIo& operator=(const SocketIo&) = delete;
    virtual ~SocketIo() = default;

    // Sends and receives without waiting. Sets every result before it returns. `receive` may be nullptr. After a send
    // that found no room no further one is tried, so that sends keep their order.
    virtual void exchange(std::span<SocketMessage> sends, SocketMessage* receive) noexcept = 0;
    [[nodiscard]] virtual std::string describe() const = 0;
};

// As exchange(), with a system call for each message.
void exchange_by_calls(int fd, std::span<SocketMessage> sends, SocketMessage* receive) noexcept;

}  // namespace cairn::port
