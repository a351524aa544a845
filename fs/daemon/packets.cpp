#include "fs/daemon/packets.hpp"

#include <sys/socket.h>

#include <cerrno>

#include "lib/base/passed_fds.hpp"

namespace cairn::fs {

std::shared_ptr<const Person> person_at(int socket) {
    ucred who{};
    socklen_t bytes = sizeof(who);
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0) {
        return nullptr;
    }
    auto person = std::make_shared<Person>(Person{who.uid, who.gid, who.pid});
    bytes = 0;
    // If the room is too small, the kernel returns the size that it needs.
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, nullptr, &bytes) != 0 && errno != ERANGE) {
        return nullptr;
    }
    person->groups.resize(bytes / sizeof(std::uint32_t));
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, person->groups.data(), &bytes) != 0) {
        return nullptr;
    }
    return person;
}

// MSG_TRUNC: returns the packet's full length.
Reception receive_packet(int socket, std::span<std::uint8_t> room) noexcept {
    const ssize_t bytes = ::recv(socket, room.data(), room.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (bytes < 0) {
        return {errno == EAGAIN || errno == EINTR ? Received::Nothing : Received::End};
    }
    const auto length = static_cast<std::size_t>(bytes);
    if (length == 0 || length > room.size()) {
        return {length == 0 ? Received::End : Received::TooLong};
    }
    return {Received::Packet, room.first(length)};
}

bool send_packet(int socket, std::span<const std::uint8_t> bytes, std::span<const int> fds) noexcept {
    return send_with_fds<kMostFds>(socket, bytes, fds, MSG_DONTWAIT | MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
}

}  // namespace cairn::fs
