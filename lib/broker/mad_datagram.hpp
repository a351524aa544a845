// Management datagrams (queue pair 1) in their wire format.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "lib/broker/counters.hpp"
#include "lib/broker/messages.hpp"
#include "lib/port/ip_id.hpp"
#include "lib/wire/ud.hpp"

namespace cairn::broker {

constexpr std::size_t kMadDatagramBytes = wire::kUdOverheadBytes + wire::kMadBytes;

// The room of a datagram, and the room in front of it, which a path reads.
constexpr std::size_t kRoomInFront = wire::Bth::kBytes;
using MadRoom = std::array<std::uint8_t, kRoomInFront + kMadDatagramBytes>;

struct MadRoute {
    net::IpAddress from{};
    net::IpAddress to{};  // of the same family (asserted)
    std::uint16_t udp_source_port = 0;
};

// A datagram to be sent.
class MadDatagram {
public:
    // Makes the datagram. Its ICRC is for ID 0, which the kernel gives a datagram that leaves alone.
    MadDatagram(const MadRoute& route, const wire::UdHeader& header, const wire::MadBytes& mad) noexcept;
    [[nodiscard]] std::span<const std::uint8_t> bytes() const noexcept {
        return std::span(room_).subspan(kRoomInFront);
    }

private:
    MadRoom room_{};
};

// Returns the header of messages between connection managers.
[[nodiscard]] inline wire::UdHeader mad_header(Psn psn) noexcept {
    wire::UdHeader header;
    header.to = header.from = wire::kGeneralServicesQpn;
    header.qkey = wire::kGeneralServicesQkey;
    header.psn = psn;
    return header;
}

// Judges which datagrams to an address are forwarded to programs.
class MadJudge {
public:
    explicit MadJudge(const net::IpAddress& local) : local_(local) {}
    // Returns the counter of the reason why the datagram is dropped; nullopt if it is not. The result depends on the
    // datagram alone: any IPv4 ID is accepted, and the receiving program checks it.
    [[nodiscard]] std::optional<Counter> judge(const Stray& stray);

private:
    // Returns whether the ICRC fits. `datagram`: its bytes, with room in front.
    [[nodiscard]] bool is_whole(const Stray& stray, const std::uint8_t* datagram);

    const net::IpAddress local_;
    port::IpIdDeltas deltas_;
};

}  // namespace cairn::broker
