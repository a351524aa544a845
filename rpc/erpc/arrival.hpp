// One data packet that arrived: its header, its payload, and its session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/roce/ud/mux.hpp"
#include "rpc/erpc/header.hpp"
#include "rpc/erpc/header_words.hpp"
#include "rpc/erpc/session.hpp"

namespace cairn::erpc {

// Its source was checked: the session's peer sent it. An arrival is valid while the burst is delivered.
struct Arrival {
    Session& session;
    const roce::UdDatagram& datagram;
    const Header& header;
    Instant now;

    [[nodiscard]] std::size_t payload_bytes() const noexcept { return datagram.payload_bytes - sizeof(RawHeader); }
    [[nodiscard]] std::span<const std::uint8_t> payload() const noexcept {
        return {datagram.payload + sizeof(RawHeader), payload_bytes()};
    }
    [[nodiscard]] port::PacketRef& packet() const noexcept { return *datagram.packet; }
    [[nodiscard]] std::uint32_t slot_index() const noexcept { return header.request_number % kSlotsPerSession; }
};

// A packet that takes the short path if its slot expects its second word. All its other bytes were compared: it is a
// whole data packet from the session's peer, and its message is small.
struct SmallPacket {
    Session& session;
    port::PacketRef& packet;
    FirstWord first;
    SecondWord second;

    static constexpr std::size_t kHeaders = sizeof(wire::RawUd) + sizeof(RawHeader);
    [[nodiscard]] std::span<const std::uint8_t> payload() const noexcept {
        return {packet.data + kHeaders, first.message_bytes()};
    }
};

}  // namespace cairn::erpc
