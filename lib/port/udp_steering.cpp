// Several sockets of one address, and the program by which the kernel chooses among them.
#include <fmt/format.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "lib/port/udp_socket.hpp"
#include "lib/wire/bth.hpp"

namespace cairn::port {

namespace {

// The word that ends with the destination queue pair.
constexpr std::uint32_t kQpnWordAt = offsetof(wire::RawBth, resv8a);
constexpr std::uint32_t kQpnBits = 0xffffff;
static_assert(offsetof(wire::RawBth, dest_qpn) == kQpnWordAt + 1);

constexpr sock_filter step(unsigned code, std::uint32_t value, std::uint8_t if_true = 0, std::uint8_t if_false = 0) {
    return {static_cast<std::uint16_t>(code), if_true, if_false, value};
}

// Returns QpnOwners::of() as a program for the kernel, which begins at the UDP payload. A payload shorter than a BTH
// goes to worker 0.
constexpr std::array<sock_filter, 9> steering_program(std::uint32_t mask, std::uint32_t sockets) {
    return {step(BPF_LD | BPF_W | BPF_LEN, 0),
            step(BPF_JMP | BPF_JGE | BPF_K, wire::Bth::kBytes, 0, 6),
            step(BPF_LD | BPF_W | BPF_ABS, kQpnWordAt),
            step(BPF_ALU | BPF_AND | BPF_K, kQpnBits),
            step(BPF_JMP | BPF_JGT | BPF_K, QpnOwners::kLastManagement, 0, 3),
            step(BPF_ALU | BPF_AND | BPF_K, mask),
            step(BPF_JMP | BPF_JGE | BPF_K, sockets, 1, 0),
            step(BPF_RET | BPF_A, 0),
            step(BPF_RET | BPF_K, 0)};
}

}  // namespace

// The first socket is bound as if it were the only one. So the bind fails if another process has the address, even if
// that process would share it. The socket is shared afterwards and lets the others of this process in. Another Cairn
// process begins in the same way.
Result<std::vector<UdpSocket>> UdpSocket::open_all(const UdpSocketConfig& config, const QpnOwners& owners) {
    std::vector<UdpSocket> sockets;  // the kernel numbers them in the order in which they are bound
    while (sockets.size() < owners.workers()) {
        const Binding binding = owners.workers() == 1 ? Binding::Alone
                                : sockets.empty()     ? Binding::First
                                                      : Binding::Beside;
        auto opened = open_bound(config, binding);
        if (!opened.ok()) {
            return opened.error();
        }
        sockets.push_back(std::move(opened).value());
    }
    const Status steered =
        owners.workers() == 1 ? Status(Nothing{}) : sockets.front().steer(owners.mask(), owners.workers());
    if (!steered.ok()) {
        return steered.error();
    }
    return sockets;
}

Status UdpSocket::share() noexcept {
    constexpr int kYes = 1;
    if (setsockopt(fd_, SOL_SOCKET, SO_REUSEPORT, &kYes, sizeof(kYes)) == 0) {
        return Nothing{};
    }
    return Error{
        fmt::format("the kernel refuses to share an address among sockets (SO_REUSEPORT): {}", std::strerror(errno)),
        "give one lcore: -l 0"};
}

Status UdpSocket::steer(std::uint32_t mask, std::uint32_t sockets) noexcept {
    std::array<sock_filter, 9> steps = steering_program(mask, sockets);
    const sock_fprog program{static_cast<std::uint16_t>(steps.size()), steps.data()};
    if (setsockopt(fd_, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program)) == 0) {
        return Nothing{};
    }
    return Error{fmt::format("the kernel refuses to steer datagrams to {} sockets (SO_ATTACH_REUSEPORT_CBPF): {}",
                             sockets, std::strerror(errno)),
                 "give one lcore: -l 0, or allow it (seccomp; net.core.optmem_max)"};
}

}  // namespace cairn::port
