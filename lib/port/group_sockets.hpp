// The multicast groups that a socket port joined, a socket of its own for each.
#pragma once

#include <sys/socket.h>

#include <span>
#include <utility>
#include <vector>

#include "lib/port/udp_socket.hpp"

namespace cairn::port {

class GroupSockets {
public:
    static constexpr std::size_t kMost = 16;
    using Entry = std::pair<net::IpAddress, UdpSocket>;

    // Errors: there are too many, the group is of another family, and those of UdpSocket::open_group().
    Result<const UdpSocket*> join(const UdpSocketConfig& config, const net::IpAddress& group);
    void leave(const net::IpAddress& group) noexcept;
    [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
    [[nodiscard]] std::span<const Entry> entries() const noexcept { return entries_; }

    // Every other call receives into the message, without waiting: they and the port's other socket take turns. The
    // group that something came to, and its bytes in `result`; nullptr: there was nothing.
    [[nodiscard]] const net::IpAddress* receive(msghdr& message, std::int32_t& result) noexcept;

private:
    std::vector<Entry> entries_;
    bool at_turn_ = false;
};

}  // namespace cairn::port
