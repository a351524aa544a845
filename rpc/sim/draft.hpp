// An eRPC datagram that a host without an engine composes.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "lib/port/path.hpp"
#include "lib/port/port.hpp"
#include "lib/roce/ud/mux.hpp"
#include "lib/sim/network.hpp"
#include "rpc/erpc/control.hpp"
#include "rpc/erpc/header.hpp"

namespace cairn::sim {

struct Draft {
    static constexpr std::size_t kHeaders = sizeof(wire::RawUd) + sizeof(erpc::RawHeader);
    static constexpr std::size_t kControlBytes = kHeaders + sizeof(erpc::RawControl) + port::kIcrcBytes;
    static constexpr std::size_t kRoomBelow = 128;  // for lower headers

    std::array<std::uint8_t, kRoomBelow + port::kMaxUdpPayloadBytes> bytes;
    std::size_t len = 0;

    [[nodiscard]] std::uint8_t* datagram() noexcept { return bytes.data() + kRoomBelow; }
    [[nodiscard]] wire::RawUd& ud() noexcept { return *reinterpret_cast<wire::RawUd*>(datagram()); }
    [[nodiscard]] erpc::RawHeader& header() noexcept {
        return *reinterpret_cast<erpc::RawHeader*>(datagram() + sizeof(wire::RawUd));
    }
    [[nodiscard]] erpc::RawControl& control() noexcept {
        return *reinterpret_cast<erpc::RawControl*>(datagram() + kHeaders);
    }
    // Copies a datagram that was overheard.
    void copy(std::span<const std::uint8_t> seen) noexcept {
        len = seen.size();
        std::memcpy(datagram(), seen.data(), len);
    }
    // True if the bytes can be an eRPC packet of this version.
    [[nodiscard]] bool readable() noexcept { return len >= kHeaders + port::kIcrcBytes && header().well_formed(); }
    // True if the ICRC is right.
    [[nodiscard]] bool whole(port::Path& path) noexcept {
        std::uint32_t carried = 0;
        std::memcpy(&carried, datagram() + len - port::kIcrcBytes, sizeof(carried));
        return path.icrc(port::Direction::Receive, datagram(), static_cast<std::uint16_t>(len)) == carried;
    }
    // Adds ICRC and lower headers, and sends from the place of `node`. `key` may claim the address of another place.
    void send(Network& network, std::size_t node, port::PathKey key, Instant now) {
        port::Path path(key);
        path.resolve(Network::mac_of(node), Network::mac_of(network.node_of(key.remote)));
        path.seal(datagram(), static_cast<std::uint16_t>(len));
        std::uint8_t* const first = datagram() - path.lower_bytes();
        network.send(node, Frame{std::vector<std::uint8_t>(first, datagram() + len)}, now);
    }
};

}  // namespace cairn::sim
