// SocketIo by plain system calls.
#include <cerrno>

#include "lib/port/socket_io.hpp"

namespace cairn::port {

namespace {

class PlainIo final : public SocketIo {
public:
    explicit PlainIo(int fd) noexcept : fd_(fd) {}

    void exchange(std::span<SocketMessage> sends, SocketMessage* receive) noexcept override {
        for (SocketMessage& each : sends) {
            const ssize_t sent = sendmsg(fd_, &each.header, MSG_DONTWAIT | MSG_NOSIGNAL);
            each.result = static_cast<std::int32_t>(sent < 0 ? -errno : sent);
        }
        if (receive != nullptr) {
            const ssize_t got = recvmsg(fd_, &receive->header, MSG_DONTWAIT);
            receive->result = static_cast<std::int32_t>(got < 0 ? -errno : got);
        }
    }
    [[nodiscard]] std::string describe() const override { return "plain system calls"; }

private:
    int fd_;
};

}  // namespace

std::unique_ptr<SocketIo> SocketIo::make_plain(int fd) {
    return std::make_unique<PlainIo>(fd);
}

}  // namespace cairn::port
