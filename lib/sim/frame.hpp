// A frame under way: Ethernet ... ICRC, as a wire would carry it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/types.hpp"
#include "lib/port/ecn.hpp"
#include "lib/port/path.hpp"

namespace cairn::sim {

// The bytes that Ethernet spends in addition to the frame's own: preamble, start delimiter, FCS and inter-frame gap.
constexpr std::size_t kWireOverheadBytes = 24;

struct Frame {
    std::vector<std::uint8_t> bytes;
    bool damaged = false;    // damaged on its way: no engine takes it
    std::uint8_t queue = 0;  // queue of its sender's port

    [[nodiscard]] bool is_v4() const noexcept { return bytes[12] == 0x08; }
    [[nodiscard]] std::size_t lower_bytes() const noexcept {
        return is_v4() ? port::Path::kLowerBytesV4 : port::Path::kLowerBytesV6;
    }
    [[nodiscard]] std::span<std::uint8_t> udp_payload() noexcept { return std::span(bytes).subspan(lower_bytes()); }
    [[nodiscard]] std::span<const std::uint8_t> udp_bytes() const noexcept {
        return std::span(bytes).subspan(lower_bytes());
    }
    [[nodiscard]] net::IpAddress source() const noexcept;
    [[nodiscard]] net::IpAddress destination() const noexcept;
    [[nodiscard]] std::uint16_t udp_source_port() const noexcept;
    // Returns the destination queue pair of the BTH; 0 if the frame has none.
    [[nodiscard]] Qpn dest_qpn() const noexcept;
    // Returns the two ECN bits of the IP header (RFC 3168, 5).
    [[nodiscard]] std::uint8_t ecn() const noexcept;
    // Marks a frame of an ECN-capable transport, as a congested router does. Returns false for any other frame.
    bool mark_congestion() noexcept;
    // Flips one bit of BTH ... ICRC. Never touches byte 4 of the BTH: no ICRC covers it (IBTA vol. 1, A17.3.3).
    void flip_bit(std::uint64_t choice) noexcept;
    static constexpr std::size_t kUncoveredByte = 4;
};

}  // namespace cairn::sim
