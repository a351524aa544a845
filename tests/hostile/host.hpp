// One address of the attacker: a UDP socket on the RoCEv2 port, or a host on the other side of a relay
// (tests/eal/relay.cpp), which takes and gives whole IPv4 packets. Cairn's ports are not used.
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lib/base/result.hpp"

namespace cairn::hostile {

constexpr std::uint16_t kRocePort = 4791;
constexpr std::size_t kIpAndUdpBytes = 28;

[[nodiscard]] Result<in_addr> parse_address(const std::string& text);

class Host {
public:
    // Opens a host that does not block. With `relay` the address is one of its link, else one of this machine's.
    // Errors: the address or port is not this machine's, or is taken.
    static Result<Host> open(in_addr address, std::uint16_t port = kRocePort,
                             const std::optional<sockaddr_in>& relay = std::nullopt);
    Host(Host&& other) noexcept;
    Host& operator=(Host&&) = delete;
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;
    ~Host();

    // Sends BTH ... payload and writes an ICRC after it: `packet` has 4 bytes of room for it at its end. A packet that
    // the kernel does not take is lost without an error.
    void send(in_addr to, std::span<std::uint8_t> packet);
    // As send(), but writes no ICRC.
    void send_as_it_is(in_addr to, std::span<const std::uint8_t> packet);
    // Receives the next datagram, BTH ... ICRC, cut to `room`. Returns 0 if there is none.
    [[nodiscard]] std::size_t receive(std::span<std::uint8_t> room);
    // Drops all waiting datagrams.
    void drain();

    [[nodiscard]] in_addr address() const noexcept { return address_; }
    // Counts whole IP packets, as on the wire.
    [[nodiscard]] std::uint64_t sent_bytes() const noexcept { return sent_bytes_; }
    [[nodiscard]] std::uint64_t received_bytes() const noexcept { return received_bytes_; }

private:
    Host(int fd, in_addr address, std::uint16_t port, const std::optional<sockaddr_in>& relay) noexcept
        : fd_(fd), address_(address), port_(port), relay_(relay) {}

    int fd_;
    in_addr address_;
    std::uint16_t port_;
    std::optional<sockaddr_in> relay_;
    std::uint64_t sent_bytes_ = 0;
    std::uint64_t received_bytes_ = 0;
};

}  // namespace cairn::hostile
