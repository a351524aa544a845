#include "lib/port/udp_socket.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace cairn::port {

namespace {

constexpr const char* kRemedyOfAddress = "give an address of this machine (ip addr lists them)";
constexpr timespec kBindPause{0, 10'000'000};

using Interfaces = std::unique_ptr<ifaddrs, decltype(&freeifaddrs)>;

Interfaces list_interfaces() noexcept {
    ifaddrs* list = nullptr;
    return {getifaddrs(&list) == 0 ? list : nullptr, freeifaddrs};
}

bool has_ip(const ifaddrs& entry) noexcept {
    return entry.ifa_addr != nullptr && (entry.ifa_addr->sa_family == AF_INET || entry.ifa_addr->sa_family == AF_INET6);
}

net::IpAddress address_of(const ifaddrs& entry) noexcept {
    sockaddr_storage storage{};
    std::memcpy(&storage, entry.ifa_addr,
                entry.ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    std::uint16_t port = 0;
    return from_sockaddr(storage, port);
}

// Returns nullopt if no interface has the address. All of 127.0.0.0/8 is the loopback's.
std::optional<std::string> interface_with(const net::IpAddress& address) {
    const bool loopback = address.is_v4() && address.v4() >> 24U == 127;
    const Interfaces interfaces = list_interfaces();
    for (const ifaddrs* each = interfaces.get(); each != nullptr; each = each->ifa_next) {
        if (has_ip(*each) && (address_of(*each) == address || (loopback && (each->ifa_flags & IFF_LOOPBACK) != 0))) {
            return each->ifa_name;
        }
    }
    return std::nullopt;
}

// Returns 0 if no interface has the address.
std::uint32_t mtu_of_interface_with(const net::IpAddress& address, int fd) {
    ifreq request{};
    interface_with(address).value_or("").copy(request.ifr_name, IFNAMSIZ - 1);
    return ioctl(fd, SIOCGIFMTU, &request) == 0 ? static_cast<std::uint32_t>(request.ifr_mtu) : 0;
}

bool set_number(int fd, int level, int option, int value) noexcept {
    return setsockopt(fd, level, option, &value, sizeof(value)) == 0;
}

Error explain_bind(const UdpSocketConfig& config, int reason) {
    const std::string what =
        fmt::format("cannot bind UDP {} port {}: {}", config.local.text(), config.port, std::strerror(reason));
    switch (reason) {
        case EADDRINUSE:
            return {what,
                    "another process has it (ss -lunp names it; the rdma_rxe module takes it too): stop that, or "
                    "use another address, such as 127.0.0.2"};
        case EADDRNOTAVAIL:
            return {what, kRemedyOfAddress};
        default:
            return {what, "check the address and the permissions of this user"};
    }
}

}  // namespace

socklen_t to_sockaddr(const net::IpAddress& address, std::uint16_t port, sockaddr_storage& out) noexcept {
    if (address.is_v4()) {
        auto& v4 = reinterpret_cast<sockaddr_in&>(out);
        v4 = {};
        v4.sin_family = AF_INET;
        v4.sin_port = htons(port);
        v4.sin_addr.s_addr = htonl(address.v4());
        return sizeof(v4);
    }
    auto& v6 = reinterpret_cast<sockaddr_in6&>(out);
    v6 = {};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    std::memcpy(&v6.sin6_addr, address.octets().data(), 16);
    return sizeof(v6);
}

net::IpAddress from_sockaddr(const sockaddr_storage& address, std::uint16_t& port) noexcept {
    if (address.ss_family == AF_INET6) {
        const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
        std::array<std::uint8_t, 16> octets;
        std::memcpy(octets.data(), &v6.sin6_addr, octets.size());
        port = ntohs(v6.sin6_port);
        return net::IpAddress::from_v6(octets);
    }
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    port = address.ss_family == AF_INET ? ntohs(v4.sin_port) : std::uint16_t{0};
    return net::IpAddress::from_v4(address.ss_family == AF_INET ? ntohl(v4.sin_addr.s_addr) : 0);
}

// Ignores all other errors: a caller that opens a socket for good reports them.
Status check_address(const net::IpAddress& address) {
    sockaddr_storage to{};
    const socklen_t length = to_sockaddr(address, 0, to);
    const int probe = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const int refused = probe < 0 || bind(probe, reinterpret_cast<const sockaddr*>(&to), length) == 0 ? 0 : errno;
    if (probe >= 0) {
        close(probe);
    }
    if (refused == EADDRNOTAVAIL) {
        return Error{fmt::format("no interface has the address {}", address.text()), kRemedyOfAddress};
    }
    return Nothing{};
}

std::optional<unsigned> interface_index(const net::IpAddress& address) {
    errno = 0;
    const std::optional<std::string> name = interface_with(address);
    const unsigned index = name ? if_nametoindex(name->c_str()) : 0;
    if (index != 0 || errno == 0 || errno == ENODEV) {
        return index;
    }
    return std::nullopt;
}

std::vector<net::IpAddress> local_addresses() {
    const Interfaces interfaces = list_interfaces();
    std::vector<net::IpAddress> found;
    for (const ifaddrs* each = interfaces.get(); each != nullptr; each = each->ifa_next) {
        const bool suits = has_ip(*each) && (each->ifa_flags & IFF_LOOPBACK) == 0 && (each->ifa_flags & IFF_UP) != 0;
        if (suits && (address_of(*each).is_v4() || !address_of(*each).is_v6_link_local())) {
            found.push_back(address_of(*each));
        }
    }
    return found;
}

net::IpAddress first_local_address() {
    const Interfaces interfaces = list_interfaces();
    net::IpAddress found = net::IpAddress::from_v4(0x7f000001);
    bool any = false;
    for (const ifaddrs* each = interfaces.get(); each != nullptr; each = each->ifa_next) {
        if (!has_ip(*each) || (each->ifa_flags & IFF_LOOPBACK) != 0 || (each->ifa_flags & IFF_UP) == 0) {
            continue;
        }
        const net::IpAddress address = address_of(*each);
        if (address.is_v4()) {
            return address;
        }
        if (!any && !address.is_v6_link_local()) {
            found = address;
            any = true;
        }
    }
    return found;
}

Result<UdpSocket> UdpSocket::make(const net::IpAddress& local) {
    const int fd = socket(local.is_v4() ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return Error{fmt::format("cannot make a UDP socket for {}: {}", local.text(), std::strerror(errno)),
                     "check that this machine has the address family, and the limit of open files (ulimit -n)"};
    }
    return UdpSocket(fd);
}

Result<UdpSocket> UdpSocket::open_group(const UdpSocketConfig& config, const net::IpAddress& group) {
    Result<UdpSocket> made = make(config.local);
    if (!made.ok()) {
        return made;
    }
    const int fd = made.value().fd_;
    const unsigned interface = interface_index(config.local).value_or(0);
    sockaddr_storage address{};
    const socklen_t length = to_sockaddr(group, config.port, address);
    bool joined = false;
    if (group.is_v4()) {
        ip_mreqn wish{};
        wish.imr_multiaddr = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
        wish.imr_ifindex = static_cast<int>(interface);
        joined = setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &wish, sizeof(wish)) == 0;
    } else {
        auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
        v6.sin6_scope_id = interface;
        const ipv6_mreq wish{v6.sin6_addr, interface};
        joined = setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &wish, sizeof(wish)) == 0;
    }
    if (!joined || !set_number(fd, SOL_SOCKET, SO_REUSEADDR, 1) ||
        bind(fd, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
        return Error{fmt::format("cannot join {} at {}: {}", group.text(), config.local.text(), std::strerror(errno)),
                     "give a group of the address's family, and not more of them than the kernel allows "
                     "(net.ipv4.igmp_max_memberships)"};
    }
    made.value().set_options(config);
    return made;
}

Result<UdpSocket> UdpSocket::open(const UdpSocketConfig& config) {
    return open_bound(config, Binding::Alone);
}

Result<UdpSocket> UdpSocket::open_bound(const UdpSocketConfig& config, Binding binding) {
    Result<UdpSocket> opened = make(config.local);
    if (!opened.ok()) {
        return opened;
    }
    UdpSocket& made = opened.value();
    Status shared = binding == Binding::Beside ? made.share() : Nothing{};
    const int fd = made.fd_;
    sockaddr_storage address{};
    const socklen_t length = to_sockaddr(config.local, config.port, address);
    int tries = 0;
    while (shared.ok() && bind(fd, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
        if (errno != EADDRINUSE || ++tries >= config.bind_tries) {
            return explain_bind(config, errno);
        }
        nanosleep(&kBindPause, nullptr);
    }
    shared = binding == Binding::First ? made.share() : shared;
    if (!shared.ok()) {
        return shared.error();
    }
    made.know_link(config.local);
    made.set_options(config);
    if (!config.local.is_v4()) {  // IPv4 goes by the address that the socket is bound to
        set_number(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, static_cast<int>(interface_index(config.local).value_or(0)));
    }
    return opened;
}

Result<UdpSocket> UdpSocket::adopt(int fd, const UdpSocketConfig& config) {
    UdpSocket made(fd);
    sockaddr_storage bound{};
    socklen_t length = sizeof(bound);
    std::uint16_t port = 0;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length) != 0 ||
        from_sockaddr(bound, port) != config.local || port != config.port) {
        return Error{
            fmt::format("a socket that is lent is not the one of UDP {} port {}", config.local.text(), config.port),
            "end the programs that use the address, and start again"};
    }
    made.know_link(config.local);
    made.set_options(config);
    return made;
}

void UdpSocket::know_link(const net::IpAddress& local) noexcept {
    const std::uint32_t mtu = mtu_of_interface_with(local, fd_);
    link_mtu_bytes_ = mtu != 0 ? mtu : link_mtu_bytes_;
}

void UdpSocket::set_options(const UdpSocketConfig& config) noexcept {
    if (config.local.is_v4()) {
        set_number(fd_, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
        set_number(fd_, IPPROTO_IP, IP_RECVTOS, 1);
    } else {
        set_number(fd_, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
        set_number(fd_, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
        set_number(fd_, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);  // Soft-RoCE sends without a UDP checksum
    }
    const auto wished = static_cast<int>(config.buffer_bytes);
    if (!set_number(fd_, SOL_SOCKET, SO_RCVBUFFORCE, wished)) {
        set_number(fd_, SOL_SOCKET, SO_RCVBUF, wished);
    }
    if (!set_number(fd_, SOL_SOCKET, SO_SNDBUFFORCE, wished)) {
        set_number(fd_, SOL_SOCKET, SO_SNDBUF, wished);
    }
    int given = 0;
    socklen_t size = sizeof(given);
    if (getsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &given, &size) == 0) {
        receive_buffer_bytes_ = static_cast<std::uint32_t>(given);
    }
    int segment = 0;
    size = sizeof(segment);
    segments_ =
        getsockopt(fd_, IPPROTO_UDP, UDP_SEGMENT, &segment, &size) == 0 && set_number(fd_, IPPROTO_UDP, UDP_GRO, 1);
}

// Rounds down to a power of two of milliseconds, so that most sleeps find the timeout already set.
void UdpSocket::set_receive_timeout(Duration most) noexcept {
    constexpr std::int64_t kMostMs = 1024;
    const auto wished = static_cast<std::uint64_t>(std::clamp<std::int64_t>(most.ns / 1'000'000, 1, kMostMs));
    const auto whole_ms = static_cast<std::int64_t>(std::bit_floor(wished));
    if (whole_ms != receive_timeout_ms_) {
        receive_timeout_ms_ = whole_ms;
        const timeval timeout{whole_ms / 1000, whole_ms % 1000 * 1000};
        setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    }
}

UdpSocket::UdpSocket(UdpSocket&& other) noexcept
    : fd_(other.fd_),
      link_mtu_bytes_(other.link_mtu_bytes_),
      receive_buffer_bytes_(other.receive_buffer_bytes_),
      segments_(other.segments_) {
    other.fd_ = -1;
}

UdpSocket& UdpSocket::operator=(UdpSocket&& other) noexcept {
    UdpSocket old(std::move(*this));
    std::swap(fd_, other.fd_);
    link_mtu_bytes_ = other.link_mtu_bytes_;
    receive_buffer_bytes_ = other.receive_buffer_bytes_;
    segments_ = other.segments_;
    receive_timeout_ms_ = other.receive_timeout_ms_;
    return *this;
}

UdpSocket::~UdpSocket() {
    if (fd_ >= 0) {
        close(fd_);
    }
}

}  // namespace cairn::port
