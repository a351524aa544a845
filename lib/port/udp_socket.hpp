// The UDP sockets of UringPorts: bound to an address and port 4791, unconnected, so that the kernel sends ID 0 with DF
// (IP_PMTUDISC_PROBE) and whole batches at once (UDP_SEGMENT, UDP_GRO).
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/base/time.hpp"
#include "lib/net/address.hpp"
#include "lib/port/qpn_owners.hpp"

namespace cairn::port {

struct UdpSocketConfig {
    net::IpAddress local{};
    std::uint16_t port = 4791;
    std::uint32_t buffer_bytes = 8U << 20U;  // wished for in each direction; the kernel may give less
};

class UdpSocket {
public:
    // A port still held by a process that just ended is tried again for a second. Errors: the address is not on this
    // machine, the port is another process's, no IPv6; each with its remedy.
    static Result<UdpSocket> open(const UdpSocketConfig& config);
    // A socket for each worker of one address; the kernel brings a datagram to that of the worker whose queue pair it
    // is for. Errors: those of open(), the kernel does not steer, no descriptor is left.
    static Result<std::vector<UdpSocket>> open_all(const UdpSocketConfig& config, const QpnOwners& owners);
    // For what comes to the multicast group at the interface that has the address. Other processes may have it, too.
    // Errors: the interface can not join it.
    static Result<UdpSocket> open_group(const UdpSocketConfig& config, const net::IpAddress& group);
    UdpSocket(UdpSocket&& other) noexcept;
    UdpSocket& operator=(UdpSocket&& other) noexcept;
    ~UdpSocket();

    // How long a receive without MSG_DONTWAIT blocks: about so long, by a tick of the kernel at most longer.
    void set_receive_timeout(Duration most) noexcept;

    [[nodiscard]] int fd() const noexcept { return fd_; }
    [[nodiscard]] std::uint32_t link_mtu_bytes() const noexcept { return link_mtu_bytes_; }
    [[nodiscard]] bool segments() const noexcept { return segments_; }  // UDP_SEGMENT and UDP_GRO are there
    [[nodiscard]] std::uint32_t receive_buffer_bytes() const noexcept { return receive_buffer_bytes_; }

private:
    explicit UdpSocket(int fd) noexcept : fd_(fd) {}
    // First: others may come beside it, once it is bound. Beside: it joins those that let it.
    enum class Binding : std::uint8_t { Alone, First, Beside };
    static Result<UdpSocket> open_bound(const UdpSocketConfig& config, Binding binding);
    static Result<UdpSocket> make(const net::IpAddress& local);
    [[nodiscard]] Status share() noexcept;
    [[nodiscard]] Status steer(const QpnOwners& owners) noexcept;
    void set_options(const UdpSocketConfig& config) noexcept;

    int fd_;
    std::uint32_t link_mtu_bytes_ = 1500;
    std::uint32_t receive_buffer_bytes_ = 0;
    bool segments_ = false;
    std::int64_t receive_timeout_ms_ = 0;  // 0: not set yet
};

// `address` and `port` as the socket interface wants them; the length of what is used.
[[nodiscard]] socklen_t to_sockaddr(const net::IpAddress& address, std::uint16_t port, sockaddr_storage& out) noexcept;
// The reverse; anything that is no IP address gives 0.0.0.0.
[[nodiscard]] net::IpAddress from_sockaddr(const sockaddr_storage& address, std::uint16_t& port) noexcept;

// The first address of this machine that is neither loopback nor link-local, IPv4 preferred; else 127.0.0.1.
[[nodiscard]] net::IpAddress first_local_address();

}  // namespace cairn::port
