// NoPort: the port of a worker without a network. Local clients need only a worker's mail, doorbells and sleep.
#pragma once

#include "lib/port/port.hpp"

namespace cairn::fs {

// Receives nothing, sends nothing, and sleeps until a descriptor is readable.
class NoPort final : public port::Port {
public:
    [[nodiscard]] std::size_t receive_burst(std::span<port::PacketRef>, Instant) noexcept override { return 0; }
    [[nodiscard]] Instant empty_at() const noexcept override { return {}; }
    [[nodiscard]] std::size_t transmit_burst(std::span<port::TxPacket>, Instant) noexcept override { return 0; }
    [[nodiscard]] std::size_t allocate_burst(std::span<port::PacketRef>) noexcept override { return 0; }
    void release_burst(std::span<port::PacketRef>) noexcept override {}
    [[nodiscard]] bool can_send_from(std::span<const std::uint8_t>) const noexcept override { return false; }
    [[nodiscard]] port::Path* open_path(const port::PathKey&, Instant) noexcept override { return nullptr; }
    void wait(Duration most, int also) noexcept override;
    void on_timeout(Instant) noexcept override {}
    [[nodiscard]] Instant next_deadline() const noexcept override { return Instant::never(); }
    [[nodiscard]] net::IpAddress local_address() const noexcept override { return {}; }
    [[nodiscard]] port::PortLimits limits() const noexcept override {
        return {.max_udp_payload_bytes = port::kMaxUdpPayloadBytes, .poll_only = false};
    }
    [[nodiscard]] std::string describe() const override { return "no port: clients of this machine alone"; }
};

}  // namespace cairn::fs
