#include "tests/hostile/host.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/base/endian.hpp"
#include "lib/wire/icrc.hpp"

namespace cairn::hostile {

namespace {

constexpr std::size_t kIpBytes = 20;

struct RawLower {
    std::uint8_t version = 0x45;
    std::uint8_t traffic_class = 0;
    Be16 bytes;
    Be16 id{};
    Be16 flags{0x4000};  // do not fragment: the kernel then sends ID 0
    std::uint8_t ttl = 64;
    std::uint8_t protocol = IPPROTO_UDP;
    Be16 checksum{};
    in_addr source;
    in_addr destination;
    Be16 source_port;
    Be16 destination_port{kRocePort};
    Be16 udp_bytes;
    Be16 udp_checksum{};
};
static_assert(sizeof(RawLower) == kIpAndUdpBytes);

sockaddr_in socket_address(in_addr address, std::uint16_t port) {
    sockaddr_in made{};
    made.sin_family = AF_INET;
    made.sin_port = htons(port);
    made.sin_addr = address;
    return made;
}

RawLower lower_header(in_addr from, in_addr to, std::uint16_t port, std::size_t bytes) {
    RawLower lower;
    lower.bytes.set(static_cast<std::uint16_t>(bytes + kIpAndUdpBytes));
    lower.udp_bytes.set(static_cast<std::uint16_t>(bytes + kIpAndUdpBytes - kIpBytes));
    lower.source = from;
    lower.destination = to;
    lower.source_port.set(port);
    std::array<std::uint8_t, kIpBytes> ip{};
    std::memcpy(ip.data(), &lower, ip.size());
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < ip.size(); i += 2) {
        sum += (std::uint32_t{ip[i]} << 8U) | ip[i + 1];
    }
    sum = (sum & 0xffffU) + (sum >> 16U);
    lower.checksum.set(static_cast<std::uint16_t>(~(sum + (sum >> 16U))));
    return lower;
}

}  // namespace

Result<in_addr> parse_address(const std::string& text) {
    in_addr address{};
    if (inet_pton(AF_INET, text.c_str(), &address) != 1) {
        return Error{text + " is no IPv4 address", "write it as 127.0.0.1"};
    }
    return address;
}

Result<Host> Host::open(in_addr address, std::uint16_t port, const std::optional<sockaddr_in>& relay) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return Error{std::string("no socket: ") + std::strerror(errno), "see ulimit -n"};
    }
    Host host(fd, address, port, relay);
    const int probe = IP_PMTUDISC_PROBE;
    const sockaddr_in bound = relay ? socket_address({htonl(INADDR_LOOPBACK)}, 0) : socket_address(address, port);
    if (setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe)) != 0 ||
        bind(fd, reinterpret_cast<const sockaddr*>(&bound), sizeof(bound)) != 0) {
        return Error{std::string("cannot bind the attacker's address: ") + std::strerror(errno),
                     "choose another --own"};
    }
    return Result<Host>(std::move(host));
}

Host::Host(Host&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      address_(other.address_),
      port_(other.port_),
      relay_(other.relay_),
      sent_bytes_(other.sent_bytes_),
      received_bytes_(other.received_bytes_) {}

Host::~Host() {
    if (fd_ >= 0) {
        close(fd_);
    }
}

void Host::send(in_addr to, std::span<std::uint8_t> packet) {
    const RawLower lower = lower_header(address_, to, port_, packet.size());
    const std::uint32_t state = wire::icrc_lower_state({reinterpret_cast<const std::uint8_t*>(&lower), sizeof(lower)});
    const std::size_t covered = packet.size() - wire::kIcrcBytes;
    const std::uint32_t icrc = wire::icrc_finish(state, packet.data(), covered);
    std::memcpy(packet.data() + covered, &icrc, sizeof(icrc));
    send_as_it_is(to, packet);
}

void Host::send_as_it_is(in_addr to, std::span<const std::uint8_t> packet) {
    RawLower lower = lower_header(address_, to, port_, packet.size());
    std::array<iovec, 2> pieces{{{&lower, sizeof(lower)}, {const_cast<std::uint8_t*>(packet.data()), packet.size()}}};
    sockaddr_in target = relay_ ? *relay_ : socket_address(to, kRocePort);
    msghdr message{};
    message.msg_name = &target;
    message.msg_namelen = sizeof(target);
    message.msg_iov = relay_ ? pieces.data() : &pieces[1];
    message.msg_iovlen = relay_ ? 2 : 1;
    if (sendmsg(fd_, &message, 0) > 0) {
        sent_bytes_ += packet.size() + kIpAndUdpBytes;
    }
}

std::size_t Host::receive(std::span<std::uint8_t> room) {
    std::array<std::uint8_t, kIpAndUdpBytes> lower{};
    std::array<iovec, 2> pieces{{{lower.data(), lower.size()}, {room.data(), room.size()}}};
    msghdr message{};
    message.msg_iov = relay_ ? pieces.data() : &pieces[1];
    message.msg_iovlen = relay_ ? 2 : 1;
    const ssize_t taken = recvmsg(fd_, &message, MSG_TRUNC);
    const std::size_t below = relay_ ? kIpAndUdpBytes : 0;
    if (taken <= static_cast<ssize_t>(below)) {
        return 0;
    }
    const std::size_t bytes = static_cast<std::size_t>(taken) - below;
    received_bytes_ += bytes + kIpAndUdpBytes;
    return std::min(bytes, room.size());
}

void Host::drain() {
    std::array<std::uint8_t, 8192> room{};
    while (receive(room) != 0) {
    }
}

}  // namespace cairn::hostile
