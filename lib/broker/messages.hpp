// What a program and the broker of its address say to each other: packets of a unix socket (SOCK_SEQPACKET), each of
// which is one message. Integers are big-endian. Descriptors travel beside some of them (SCM_RIGHTS).
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
constexpr std::uint16_t kMostAtOnce = 64;    // descriptors beside one message

// A program begins with one of these two. A descriptor of its process (pidfd) may come along.
struct Join {
    friend bool operator==(const Join&, const Join&) noexcept = default;
};
// A program that lost its broker has a slot, and copies of the first `sockets` sockets, which it sends behind this.
struct Rejoin {
    Slot slot{};
    std::uint16_t sockets = 0;  // [2, kMostSockets], more than `slot`

    friend bool operator==(const Rejoin&, const Rejoin&) noexcept = default;
};
// The program ends, or closes its last device: the slot is free.
struct Leave {
    friend bool operator==(const Leave&, const Leave&) noexcept = default;
};
// The answer of the broker: the slot, and how many sockets come behind this (none after a Rejoin). They are kept in
// their order, and not closed while the slot is used: the kernel counts them.
struct Lent {
    Slot slot{};
    std::uint16_t sockets = 0;

    friend bool operator==(const Lent&, const Lent&) noexcept = default;
};
// As many descriptors as it says come along.
struct Sockets {
    std::uint16_t count = 0;  // [1, kMostAtOnce]

    friend bool operator==(const Sockets&, const Sockets&) noexcept = default;
};

enum class Refusal : std::uint8_t {
    AnotherUser,  // the address belongs to programs of another user
    PortTaken,    // something that is no program of this broker has the UDP port
    Full,         // all slots are lent
    NoAnswer,     // programs that use the address do not say which slots they have
    NoResources,  // the kernel gives no more sockets, or does not steer
};
// The broker hangs up behind it.
struct Refused {
    Refusal why{};

    friend bool operator==(const Refused&, const Refused&) noexcept = default;
};

// A datagram on its way to the program that it is for: from whoever got it to the broker, and from there on.
struct Stray {
    net::IpAddress remote{};
    std::uint16_t udp_source_port = 0;
    std::uint16_t index = 0;  // its place in its batch
    std::uint8_t ecn = 0;
    std::span<const std::uint8_t> bytes{};  // at most port::kMaxUdpPayloadBytes
};

// Management datagrams (queue pair 1) come to the broker. The program answers such that nobody else is meant to answer.
struct Manage {
    friend bool operator==(const Manage&, const Manage&) noexcept = default;
};
// The program asks for a service's requests; a port of rdma_cm is the service of that number in its port space. One
// program has a service alone, or some have it that all share it: then the first of them gets the requests. Said again,
// it changes whether the service is shared.
struct Claim {
    std::uint32_t ask = 0;  // names the answer; 0: none is wanted
    wire::ServiceId service{};
    bool shares = false;

    friend bool operator==(const Claim&, const Claim&) noexcept = default;
};
// The answer of the broker.
struct Claimed {
    std::uint32_t ask = 0;
    wire::ServiceId service{};
    bool granted = false;

    friend bool operator==(const Claimed&, const Claimed&) noexcept = default;
};
// The program gives the service back.
struct Release {
    wire::ServiceId service{};

    friend bool operator==(const Release&, const Release&) noexcept = default;
};
// What the broker says to a peer if the program dies: a message that ends a connection (DREQ). `name` is the program's
// name for the connection. Said again, it takes the earlier one's place.
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

// The broker is to say what it counted, and says this behind all of it. Who asks is no program of the address.
struct Look {
    friend bool operator==(const Look&, const Look&) noexcept = default;
};
// One for each counter that is not zero.
struct Counted {
    Counter counter{};
    std::uint64_t value = 0;

    friend bool operator==(const Counted&, const Counted&) noexcept = default;
};

using Message = std::variant<Join, Rejoin, Leave, Lent, Sockets, Refused, Stray, Manage, Claim, Claimed, Release, Will,
                             Revoke, Look, Counted>;

constexpr std::size_t kMostMessageBytes = 64 + port::kMaxUdpPayloadBytes;
using MessageBytes = std::array<std::uint8_t, kMostMessageBytes>;

// Returns nothing for anything that emit_message() does not write. The bytes of a Stray lie in `bytes`.
[[nodiscard]] std::optional<Message> parse_message(std::span<const std::uint8_t> bytes) noexcept;
// Returns the message in `room`.
[[nodiscard]] std::span<const std::uint8_t> emit_message(const Message& message, MessageBytes& room) noexcept;

}  // namespace cairn::broker
