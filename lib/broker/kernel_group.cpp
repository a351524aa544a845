#include "lib/broker/kernel_group.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <random>
#include <utility>

#include "lib/base/assert.hpp"
#include "lib/wire/bth.hpp"

namespace cairn::broker {

namespace {

constexpr std::uint32_t kMask = kMostSockets - 1;
constexpr int kProbes = 5;
constexpr int kProbeMs = 20;
constexpr int kMostDrained = 100'000;  // datagrams: more come than are dropped

port::UdpSocketConfig config_of(const Place& place) {
    port::UdpSocketConfig config{place.local, place.udp_port};
    config.bind_tries = 1;
    return config;
}

std::uint64_t cookie_of(int fd) noexcept {
    std::uint64_t cookie = 0;
    socklen_t bytes = sizeof(cookie);
    getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &bytes);
    return cookie;
}

}  // namespace

bool KernelGroup::open() {
    CAIRN_ASSERT(sockets_.empty());
    auto opened = port::UdpSocket::open_bound(config_of(place_), port::UdpSocket::Binding::First);
    if (!opened.ok()) {
        return false;
    }
    sockets_.push_back(std::move(opened).value());
    return true;
}

// Finds the new socket by a datagram to it. Until that arrives, the kernel steers to sockets that are unknown here,
// too.
KernelGroup::Growth KernelGroup::grow() {
    auto opened = port::UdpSocket::open_bound(config_of(place_), port::UdpSocket::Binding::Beside);
    if (!opened.ok()) {
        return Growth::Refused;
    }
    const auto count = static_cast<std::uint32_t>(sockets_.size()) + 1;
    if (!sockets_.front().steer(kMask, others_ ? kMostSockets : count).ok()) {
        return Growth::Refused;
    }
    if (!reaches(opened.value(), static_cast<std::uint8_t>(count - 1))) {
        return others_ ? Growth::Hidden : Growth::Refused;
    }
    if (std::exchange(others_, false)) {
        (void)sockets_.front().steer(kMask, count);  // the kernel took such a program a moment ago
    }
    sockets_.push_back(std::move(opened).value());
    return Growth::Grown;
}

bool KernelGroup::reaches(const port::UdpSocket& socket, std::uint8_t index) noexcept {
    for (int tries = 0; tries < kProbes; ++tries) {
        if (asks_itself(socket, index)) {
            return true;
        }
    }
    return false;
}

// Sends a datagram that is too short for any queue pair, with a number that others cannot guess, and waits for it.
bool KernelGroup::asks_itself(const port::UdpSocket& socket, std::uint8_t index) noexcept {
    std::array<std::uint8_t, wire::Bth::kBytes> probe{};
    std::random_device entropy;
    for (std::uint8_t& octet : probe) {
        octet = static_cast<std::uint8_t>(entropy());
    }
    reinterpret_cast<wire::RawBth*>(probe.data())->dest_qpn.set(kMostSockets | index);
    sockaddr_storage to{};
    const socklen_t length = port::to_sockaddr(place_.local, place_.udp_port, to);
    (void)sendto(sockets_.front().fd(), probe.data(), probe.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&to),
                 length);
    pollfd waiting{socket.fd(), POLLIN, 0};
    for (int got_others = 0; got_others < kMostDrained && poll(&waiting, 1, kProbeMs) > 0; ++got_others) {
        std::array<std::uint8_t, wire::Bth::kBytes> got{};
        const ssize_t bytes = recv(socket.fd(), got.data(), got.size(), MSG_DONTWAIT | MSG_TRUNC);
        if (bytes == static_cast<ssize_t>(probe.size()) && got == probe) {
            return true;
        }
    }
    return false;
}

bool KernelGroup::adopt(std::vector<OwnedFd> held) {
    std::vector<port::UdpSocket> more;
    for (std::size_t i = 0; i < held.size(); ++i) {
        if (i < sockets_.size()) {
            if (cookie_of(held[i].get()) != cookie_of(sockets_[i].fd())) {
                return false;
            }
            continue;
        }
        auto adopted = port::UdpSocket::adopt(held[i].release(), config_of(place_));
        if (!adopted.ok()) {
            return false;
        }
        more.push_back(std::move(adopted).value());
    }
    others_ = others_ || !more.empty();
    for (port::UdpSocket& each : more) {
        sockets_.push_back(std::move(each));
    }
    return true;
}

void KernelGroup::drain(std::size_t index) noexcept {
    std::uint8_t octet = 0;
    for (int dropped = 0; dropped < kMostDrained; ++dropped) {
        if (recv(sockets_.at(index).fd(), &octet, 1, MSG_DONTWAIT | MSG_TRUNC) < 0) {
            return;
        }
    }
}

}  // namespace cairn::broker
