// Unix sockets between programs and the broker of an address: their names, and packets with descriptors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/base/owned_fd.hpp"
#include "lib/base/time.hpp"
#include "lib/broker/messages.hpp"
#include "lib/net/address.hpp"

namespace cairn::broker {

// A UDP address that programs share. They meet its broker at a name without a file (abstract). Each network namespace
// has such names of its own, as it has ports.
// namespace has for itself, as it has ports.
struct Place {
    net::IpAddress local{};
    std::uint16_t udp_port = 4791;

    [[nodiscard]] std::string name() const;
    [[nodiscard]] std::string text() const;  // "10.0.0.1 port 4791"
};

// Binds the name and listens. The result is not open if another process has the name (EADDRINUSE), or no descriptor is
// left; errno has the reason.
[[nodiscard]] OwnedFd listen_at(const Place& place) noexcept;
// Connects. The result is not open if no broker listens (ECONNREFUSED), or it does not accept in time; errno has the
// reason. The connection takes `limit` at most, as do receives and sends on the socket, however many signals come.
[[nodiscard]] OwnedFd connect_to(const Place& place, Duration limit) noexcept;

// Waits for `event`, of poll(). Returns false if it does not come in time, however many signals do.
[[nodiscard]] bool await(int socket, short event, Instant until) noexcept;

struct Peer {
    std::uint32_t uid = 0;
    std::int32_t pid = 0;  // 0: of another namespace
};
// Returns the process that connected, or the one that listens.
[[nodiscard]] Peer peer_of(int socket) noexcept;

// Sends one packet, with at most kMostAtOnce descriptors (asserted). Returns false if there is no room and the socket
// does not wait, or if the other end has gone.
[[nodiscard]] bool send_packet(int socket, std::span<const std::uint8_t> bytes, std::span<const int> fds,
                               bool waits) noexcept;
[[nodiscard]] bool send_message(int socket, const Message& message, std::span<const int> fds, bool waits) noexcept;
// Sends copies of all of them, after Sockets messages.
[[nodiscard]] bool send_sockets(int socket, std::span<const int> fds, bool waits) noexcept;

struct Packet {
    std::array<std::uint8_t, kMostMessageBytes> room{};
    std::span<const std::uint8_t> bytes{};  // in the room
    std::vector<OwnedFd> fds{};
};
enum class Received : std::uint8_t { Packet, Nothing, NoDescriptor, End };
// Receives one packet. A packet that is too long is End, as is an empty one. If the socket waits, Nothing means that
// its time is up. NoDescriptor: descriptors came of which this process may not have all; they are lost.
[[nodiscard]] Received receive_packet(int socket, Packet& packet, bool waits);

}  // namespace cairn::broker
