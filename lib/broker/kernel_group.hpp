// The sockets of one address, between which the kernel steers by the low bits of queue pairs' numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/owned_fd.hpp"
#include "lib/base/result.hpp"
#include "lib/broker/hands.hpp"
#include "lib/broker/packets.hpp"
#include "lib/port/udp_socket.hpp"

namespace cairn::broker {

// The kernel numbers the sockets of an address in the order in which they were bound. When one closes, the last one
// takes its number. So a process that holds any of them holds all before it: then only sockets after its own can close.
class KernelGroup {
public:
    explicit KernelGroup(const Place& place) : place_(place) {}

    [[nodiscard]] const std::vector<port::UdpSocket>& sockets() const noexcept { return sockets_; }
    // Opens the first one. There are none (asserted). Returns false if another process has the port.
    [[nodiscard]] bool open();
    using Growth = Hands::Growth;
    // Opens one more. Hidden: the kernel has others that this process does not know. Refused: the kernel has no more,
    // or does not steer.
    [[nodiscard]] Growth grow();
    // Takes sockets that another process held for an earlier group. The sockets that are here already have to be the
    // same.
    [[nodiscard]] bool adopt(std::vector<OwnedFd> held);
    // Drops the datagrams that wait in the socket of that number.
    void drain(std::size_t index) noexcept;

private:
    [[nodiscard]] bool reaches(const port::UdpSocket& socket, std::uint8_t index) noexcept;
    [[nodiscard]] bool asks_itself(const port::UdpSocket& socket, std::uint8_t index) noexcept;

    const Place place_;
    std::vector<port::UdpSocket> sockets_;
    bool others_ = false;  // an earlier process opened these, and perhaps more
};

}  // namespace cairn::broker
