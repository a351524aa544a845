// The messages between a program and the broker of its address: packets of a unix socket (SOCK_SEQPACKET), each of
// which is one message. Integers are big-endian. Some carry descriptors (SCM_RIGHTS).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "lib/base/types.hpp"
#include "lib/broker/counters.hpp"
#include "lib/net/address.hpp"
#include "lib/port/port.hpp"
#include "lib/wire/cm_types.hpp"
#include "lib/wire/mad.hpp"

namespace cairn::broker {

// A program's place among those of one address, and the low bits of its queue pairs' numbers. 0 is the broker's.
using Slot = Number<struct SlotTag, std::uint8_t>;

constexpr std::uint16_t kMostSockets = 256;  // of an address, one for each slot
constexpr std::uint16_t kMostAtOnce = 64;    // descriptors of one message

// A program begins with one of these two. A descriptor of its process (pidfd) may come along.
struct Join {
    friend bool operator==(const Join&, const Join&) noexcept = default;
};
// A program that lost its broker has a slot, and copies of the first `sockets` sockets, which it sends after this.
struct Rejoin {
    Slot slot{};
    std::uint16_t sockets = 0;  // [2, kMostSockets], more than `slot`

    friend bool operator==(const Rejoin&, const Rejoin&) noexcept = default;
};
// The program ends, or closes its last device: its slot is free.
struct Leave {
    friend bool operator==(const Leave&, const Leave&) noexcept = default;
};
// The answer of the broker: the slot, and how many sockets come after this (none after a Rejoin). The program keeps
// them in their order, and does not close them while it uses the slot: the kernel counts them.
struct Lent {
    Slot slot{};
    std::uint16_t sockets = 0;

    friend bool operator==(const Lent&, const Lent&) noexcept = default;
};
// Carries `count` descriptors.
struct Sockets {
    std::uint16_t count = 0;  // [1, kMostAtOnce]

    friend bool operator==(const Sockets&, const Sockets&) noexcept = default;
};

enum class Refusal : std::uint8_t {
    AnotherUser,  // the address belongs to programs of another user
    PortTaken,    // another socket than this broker's programs' has the UDP port
    Full,         // all slots are lent
    NoAnswer,     // programs that use the address have not reported their slots
    NoResources,  // the kernel gives no more sockets, or does not steer
};
// The broker refuses, and then closes the connection.
struct Refused {
    Refusal why{};

    friend bool operator==(const Refused&, const Refused&) noexcept = default;
};

// A datagram on its way to the program that it is for. It goes from the program that got it to the broker, and from the
// broker on.
struct Stray {
    net::IpAddress remote{};
    std::uint16_t udp_source_port = 0;
    std::uint16_t index = 0;  // its place in its batch
    std::uint8_t ecn = 0;
    std::span<const std::uint8_t> bytes{};  // at most port::kMaxUdpPayloadBytes
};

// Requests management datagrams (queue pair 1), which come to the broker. The program answers only those that no other
// program is meant to answer.
struct Manage {
    friend bool operator==(const Manage&, const Manage&) noexcept = default;
};
// Claims a service, whose requests come to the program. A port of rdma_cm is the service of that number in its port
// space. One program has a service alone, or several share it: then the first of them gets the requests. A repeated
// claim changes whether the service is shared.
struct Claim {
    std::uint32_t ask = 0;  // names the answer; 0: none is wanted
    wire::ServiceId service{};
    bool shares = false;

    friend bool operator==(const Claim&, const Claim&) noexcept = default;
};
// Answers a Claim.
struct Claimed {
    std::uint32_t ask = 0;
    wire::ServiceId service{};
    bool granted = false;

    friend bool operator==(const Claimed&, const Claimed&) noexcept = default;
};
// Gives the service back.
struct Release {
    wire::ServiceId service{};

    friend bool operator==(const Release&, const Release&) noexcept = default;
};
// A message that ends a connection (DREQ), which the broker sends to the peer if the program dies. `name` is the
// program's name for the connection. A repeated message replaces the earlier one.
struct Will {
    std::uint32_t name = 0;
    net::IpAddress remote{};
    wire::MadBytes mad{};

    friend bool operator==(const Will&, const Will&) noexcept = default;
};
struct Revoke {
    std::uint32_t name = 0;

    friend bool operator==(const Revoke&, const Revoke&) noexcept = default;
};

// Asks for the broker's counters. The broker sends one Counted for each, and then this message. The client is no
// program of the address.
struct Look {
    friend bool operator==(const Look&, const Look&) noexcept = default;
};
// One counter that is not zero.
struct Counted {
    Counter counter{};
    std::uint64_t value = 0;

    friend bool operator==(const Counted&, const Counted&) noexcept = default;
};

using Message = std::variant<Join, Rejoin, Leave, Lent, Sockets, Refused, Stray, Manage, Claim, Claimed, Release, Will,
                             Revoke, Look, Counted>;

constexpr std::size_t kMostMessageBytes = 64 + port::kMaxUdpPayloadBytes;
using MessageBytes = std::array<std::uint8_t, kMostMessageBytes>;

// Returns the message; nullopt for bytes that emit_message() does not write. The bytes of a Stray lie in `bytes`.
[[nodiscard]] std::optional<Message> parse_message(std::span<const std::uint8_t> bytes) noexcept;
// Writes the message to `room` and returns its bytes.
[[nodiscard]] std::span<const std::uint8_t> emit_message(const Message& message, MessageBytes& room) noexcept;

}  // namespace cairn::broker
