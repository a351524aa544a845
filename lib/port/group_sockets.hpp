// The multicast groups that a socket port joined. Each group has a socket of its own.
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

    // Joins a group. Errors: there are kMost groups already, the group is of another family, and those of
    // UdpSocket::open_group().
    Result<const UdpSocket*> join(const UdpSocketConfig& config, const net::IpAddress& group);
    void leave(const net::IpAddress& group) noexcept;
    [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
    [[nodiscard]] std::span<const Entry> entries() const noexcept { return entries_; }

    // Receives into `message` without waiting, but only on every other call. So the groups and the port's own socket
    // take turns. Returns the group that a datagram came to and writes the number of bytes to `result`. Returns nullptr
    // if there was none.
    [[nodiscard]] const net::IpAddress* receive(msghdr& message, std::int32_t& result) noexcept;

private:
    std::vector<Entry> entries_;
    bool at_turn_ = false;
};

}  // namespace cairn::port
