// Passes descriptors together with the bytes of a message over a unix socket (SCM_RIGHTS).
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "lib/base/assert.hpp"

namespace cairn {

// Sends one message, as sendmsg() with these flags, and returns the result of sendmsg(). There are at most `kMost`
// descriptors (asserted). They stay the caller's.
template <std::size_t kMost>
ssize_t send_with_fds(int socket, std::span<const std::uint8_t> bytes, std::span<const int> fds, int flags) noexcept {
    CAIRN_ASSERT(fds.size() <= kMost);
    iovec part{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMost * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
        message.msg_control = control.data();
        message.msg_controllen = CMSG_SPACE(fds.size_bytes());
        cmsghdr* const head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(fds.size_bytes());
        std::memcpy(CMSG_DATA(head), fds.data(), fds.size_bytes());
    }
    return ::sendmsg(socket, &message, flags);
}

// Calls `take` with each descriptor that came with a message of recvmsg(). From then on `take` owns the descriptor.
template <class Take>
void take_fds(msghdr& message, const Take& take) {
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i != count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof(int));
            take(fd);
        }
    }
}

}  // namespace cairn
