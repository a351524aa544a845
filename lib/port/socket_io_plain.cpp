// SocketIo by plain system calls.
#include <cerrno>

#include "lib/port/socket_io.hpp"

namespace cairn::port {

namespace {

class PlainIo final : public SocketIo {
public:
    explicit PlainIo(int fd) noexcept : fd_(fd) {}

    void exchange(std::span<SocketMessage> sends, SocketMessage* receive) noexcept override {
        exchange_by_calls(fd_, sends, receive);
    }
    [[nodiscard]] std::string describe() const override { return "plain system calls"; }

private:
    int fd_;
};

}  // namespace

void exchange_by_calls(int fd, std::span<SocketMessage> sends, SocketMessage* receive) noexcept {
    bool full = false;
    for (SocketMessage& each : sends) {
        if (full) [[unlikely]] {
            each.result = -EAGAIN;
            continue;
        }
        const ssize_t sent = sendmsg(fd, &each.header, MSG_DONTWAIT | MSG_NOSIGNAL);
        each.result = static_cast<std::int32_t>(sent < 0 ? -errno : sent);
        full = each.found_no_room();
    }
    if (receive != nullptr) {
        const ssize_t got = recvmsg(fd, &receive->header, MSG_DONTWAIT);
        receive->result = static_cast<std::int32_t>(got < 0 ? -errno : got);
    }
}

std::unique_ptr<SocketIo> SocketIo::make_plain(int fd) {
    return std::make_unique<PlainIo>(fd);
}

}  // namespace cairn::port
