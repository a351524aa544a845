#include "lib/broker/packets.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>

#include "lib/base/monotonic_clock.hpp"
#include "lib/base/passed_fds.hpp"

namespace cairn::broker {

namespace {

constexpr int kBacklog = 512;

// Writes the name, which begins with a zero byte. Returns its length.
socklen_t address_of(const Place& place, sockaddr_un& address) {
    const std::string name = place.name();
    address = {};
    address.sun_family = AF_UNIX;
    const std::size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
    std::memcpy(address.sun_path + 1, name.data(), length);
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

// Sets the limit of the socket. The kernel takes 0 for no limit.
void set_limit(int socket, Duration limit) noexcept {
    const std::int64_t us = std::max<std::int64_t>(limit.ns / 1000, 1);
    const timeval wait{us / 1'000'000, us % 1'000'000};
    for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
        setsockopt(socket, SOL_SOCKET, option, &wait, sizeof(wait));
    }
}

// Returns the end of the socket's limit, counted from now.
Instant end_of_limit(int socket) noexcept {
    timeval wait{};
    socklen_t bytes = sizeof(wait);
    const bool known = getsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &wait, &bytes) == 0;
    const Duration limit = milliseconds(wait.tv_sec * 1000 + wait.tv_usec / 1000);
    return known && limit > Duration{} ? read_monotonic() + limit : Instant::never();
}

// Calls `once`, which does not wait and is not interrupted, until it has done something or fails. If the socket waits,
// the wait is here: the kernel's wait begins anew with each call, and so would never end under signals.
template <class Once>
ssize_t try_until_done(int socket, short event, bool waits, const Once& once) noexcept {
    const Instant until = waits ? end_of_limit(socket) : Instant{};
    for (;;) {
        const ssize_t bytes = once();
        if (bytes >= 0 || errno != EAGAIN || !waits) {
            return bytes;
        }
        if (!await(socket, event, until)) {
            errno = EAGAIN;
            return -1;
        }
    }
}

}  // namespace

std::string Place::name() const {
    return fmt::format("cairn-broker/{}/{}", udp_port, local.text());
}

std::string Place::text() const {
    return fmt::format("{} port {}", local.text(), udp_port);
}

OwnedFd listen_at(const Place& place) noexcept {
    sockaddr_un address{};
    const socklen_t length = address_of(place, address);
    OwnedFd made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const bool listens = made.is_open() && bind(made.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
                         listen(made.get(), kBacklog) == 0;
    return listens ? std::move(made) : OwnedFd();
}

bool await(int socket, short event, Instant until) noexcept {
    for (;;) {
        const Duration left = std::max(until - read_monotonic(), Duration{});
        const timespec span{left.ns / 1'000'000'000, left.ns % 1'000'000'000};
        pollfd waiting{socket, event, 0};
        const int ready = ppoll(&waiting, 1, &span, nullptr);
        if (ready >= 0 || errno != EINTR) {
            return ready > 0;
        }
    }
}

OwnedFd connect_to(const Place& place, Duration limit) noexcept {
    sockaddr_un address{};
    const socklen_t length = address_of(place, address);
    OwnedFd made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!made.is_open()) {
        return made;
    }
    const Instant until = read_monotonic() + limit;
    int failed = 0;
    do {
        set_limit(made.get(), until - read_monotonic());
        failed = connect(made.get(), reinterpret_cast<const sockaddr*>(&address), length);
    } while (failed != 0 && errno == EINTR);
    if (failed != 0) {
        return {};
    }
    set_limit(made.get(), limit);
    return made;
}

Peer peer_of(int socket) noexcept {
    ucred who{};
    who.uid = static_cast<uid_t>(-1);
    socklen_t bytes = sizeof(who);
    getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &bytes);
    return {who.uid, who.pid};
}

bool send_packet(int socket, std::span<const std::uint8_t> bytes, std::span<const int> fds, bool waits) noexcept {
    const ssize_t sent = try_until_done(socket, POLLOUT, waits, [&]() noexcept {
        return send_with_fds<kMostAtOnce>(socket, bytes, fds, MSG_DONTWAIT | MSG_NOSIGNAL);
    });
    return sent == static_cast<ssize_t>(bytes.size());
}

bool send_message(int socket, const Message& message, std::span<const int> fds, bool waits) noexcept {
    MessageBytes room;
    return send_packet(socket, emit_message(message, room), fds, waits);
}

bool send_sockets(int socket, std::span<const int> fds, bool waits) noexcept {
    bool sent = true;
    while (sent && !fds.empty()) {
        const std::size_t count = std::min<std::size_t>(fds.size(), kMostAtOnce);
        sent = send_message(socket, Sockets{static_cast<std::uint16_t>(count)}, fds.first(count), waits);
        fds = fds.subspan(count);
    }
    return sent;
}

// If the other end closed without having read all, the kernel reports that once, before the messages which that end
// sent.
Received receive_packet(int socket, Packet& packet, bool waits) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostAtOnce * sizeof(int))> control;
    iovec part{packet.room.data(), packet.room.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    packet.fds.clear();
    const ssize_t bytes = try_until_done(socket, POLLIN, waits, [&]() noexcept {
        const ssize_t some = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        return some < 0 && errno == ECONNRESET ? recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) : some;
    });
    if (bytes < 0) {
        return errno == EAGAIN ? Received::Nothing : Received::End;
    }
    take_fds(message, [&packet](int fd) { packet.fds.emplace_back(fd); });
    const bool lacks_some = (message.msg_flags & MSG_CTRUNC) != 0;
    if (bytes == 0 || (message.msg_flags & MSG_TRUNC) != 0 || (lacks_some && packet.fds.size() == kMostAtOnce)) {
        return Received::End;
    }
    if (lacks_some) {
        packet.fds.clear();
        return Received::NoDescriptor;
    }
    packet.bytes = std::span<const std::uint8_t>(packet.room).first(static_cast<std::size_t>(bytes));
    return Received::Packet;
}

}  // namespace cairn::broker
