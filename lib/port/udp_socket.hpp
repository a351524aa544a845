// The UDP sockets of UringPorts. They are bound to an address and port 4791, and unconnected. So the kernel sends ID 0
// with DF (IP_PMTUDISC_PROBE), and takes whole batches at once (UDP_SEGMENT, UDP_GRO).
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/base/time.hpp"
#include "lib/net/address.hpp"
#include "lib/port/qpn_owners.hpp"

namespace cairn::port {

struct UdpSocketConfig {
    net::IpAddress local{};
    std::uint16_t port = 4791;
    std::uint32_t buffer_bytes = 8U << 20U;  // wanted in each direction; the kernel may give less
    std::uint16_t bind_tries = 100;  // 10 ms apart, while another process, perhaps one that just ended, holds the port
};

class UdpSocket {
public:
    // Opens a socket. Tries again while a process that just ended still holds the port. Errors: this machine does not
    // have the address; another process has the port; there is no IPv6. Each error names its remedy.
    static Result<UdpSocket> open(const UdpSocketConfig& config);
    // Opens a socket for each worker of one address. The kernel brings a datagram to the worker that has its queue
    // pair. Errors: as open(); the kernel does not steer; no descriptor is left.
    static Result<std::vector<UdpSocket>> open_all(const UdpSocketConfig& config, const QpnOwners& owners);
    // Opens one socket of several. First lets other sockets bind to the address after it is bound, so it is refused if
    // another process has the address. Beside binds in addition to such sockets of the same user, after them in the
    // kernel's order. Errors: as open().
    enum class Binding : std::uint8_t { Alone, First, Beside };
    static Result<UdpSocket> open_bound(const UdpSocketConfig& config, Binding binding);
    // Takes a socket of an address that another process opened. That process or another may hold it, too. Errors: it is
    // not bound to the address and port; the descriptor is closed then.
    static Result<UdpSocket> adopt(int fd, const UdpSocketConfig& config);
    // Opens a socket for datagrams to the multicast group, at the interface that has the local address. Other processes
    // may join the group, too. Errors: the interface cannot join the group.
    static Result<UdpSocket> open_group(const UdpSocketConfig& config, const net::IpAddress& group);
    UdpSocket(UdpSocket&& other) noexcept;
    UdpSocket& operator=(UdpSocket&& other) noexcept;
    ~UdpSocket();

    // Lets the kernel steer, for all sockets of the address. `index` is the value of the bits of `mask` in a datagram's
    // queue pair number. If it is below `sockets`, the datagram comes to the socket of that index in the order of
    // binding. All others come to the first. Errors: the kernel does not steer.
    [[nodiscard]] Status steer(std::uint32_t mask, std::uint32_t sockets) noexcept;
    // Sets how long a receive without MSG_DONTWAIT blocks: about `most`, and up to a tick of the kernel more.
    void set_receive_timeout(Duration most) noexcept;

    [[nodiscard]] int fd() const noexcept { return fd_; }
    [[nodiscard]] std::uint32_t link_mtu_bytes() const noexcept { return link_mtu_bytes_; }
    [[nodiscard]] bool segments() const noexcept { return segments_; }  // has UDP_SEGMENT and UDP_GRO
    [[nodiscard]] std::uint32_t receive_buffer_bytes() const noexcept { return receive_buffer_bytes_; }

private:
    explicit UdpSocket(int fd) noexcept : fd_(fd) {}
    static Result<UdpSocket> make(const net::IpAddress& local);
    [[nodiscard]] Status share() noexcept;
    void set_options(const UdpSocketConfig& config) noexcept;
    void know_link(const net::IpAddress& local) noexcept;

    int fd_;
    std::uint32_t link_mtu_bytes_ = 1500;
    std::uint32_t receive_buffer_bytes_ = 0;
    bool segments_ = false;
    std::int64_t receive_timeout_ms_ = 0;  // 0: not set yet
};

// Checks that sockets can be bound to the address. Errors: this machine does not have it.
[[nodiscard]] Status check_address(const net::IpAddress& address);
// Writes `address` and `port` to `out` as the socket interface wants them. Returns the length of the written part.
[[nodiscard]] socklen_t to_sockaddr(const net::IpAddress& address, std::uint16_t port, sockaddr_storage& out) noexcept;
// Reads an address and port from `address`. Returns 0.0.0.0 if it holds no IP address.
[[nodiscard]] net::IpAddress from_sockaddr(const sockaddr_storage& address, std::uint16_t& port) noexcept;

// Returns the addresses of the interfaces of this machine that are up, in their order, without loopback and link-local
// ones.
[[nodiscard]] std::vector<net::IpAddress> local_addresses();
// Returns the index of the interface that has the address; 0: none has it. Returns nullopt, with errno, if this cannot
// be found out now (no descriptor is left).
[[nodiscard]] std::optional<unsigned> interface_index(const net::IpAddress& address);

// Returns the first address of this machine that is neither loopback nor link-local, IPv4 preferred; 127.0.0.1 if there
// is none.
[[nodiscard]] net::IpAddress first_local_address();

}  // namespace cairn::port
