#include "lib/broker/stray_reader.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "lib/port/udp_socket.hpp"

namespace cairn::broker {

bool StrayReader::receive(int socket, Batch& batch) {
    sockaddr_storage from{};
    iovec part{room_.data(), room_.size()};
    alignas(cmsghdr) std::array<char, 128> control;
    msghdr message{};
    message.msg_name = &from;
    message.msg_namelen = sizeof(from);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT);
    if (got < 0) {
        return false;
    }
    batch.remote = port::from_sockaddr(from, batch.udp_source_port);
    batch.bytes = std::span<const std::uint8_t>(room_).first(static_cast<std::size_t>(got));
    batch.segment_bytes = std::max<std::size_t>(batch.bytes.size(), 1);
    for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr; each = CMSG_NXTHDR(&message, each)) {
        if (each->cmsg_level == IPPROTO_UDP && each->cmsg_type == UDP_GRO) {
            int bytes = 0;
            std::memcpy(&bytes, CMSG_DATA(each), sizeof(bytes));
            batch.segment_bytes = bytes > 0 ? static_cast<std::size_t>(bytes) : batch.segment_bytes;
        } else if ((each->cmsg_level == IPPROTO_IP && each->cmsg_type == IP_TOS) ||
                   (each->cmsg_level == IPPROTO_IPV6 && each->cmsg_type == IPV6_TCLASS)) {
            batch.ecn = *CMSG_DATA(each) & 3U;
        }
    }
    return true;
}

}  // namespace cairn::broker
