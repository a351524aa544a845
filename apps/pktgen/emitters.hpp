// Sends a stream's packets, as whole frames of a device or as datagrams of a socket.
#pragma once

#include <array>

#include "apps/pktgen/stream.hpp"
#include "lib/port/uring_port.hpp"
#include "pmd_glue/ethdev_port.hpp"
#include "pmd_glue/generator.hpp"

namespace cairn::pktgen {

// Sends frames. The stream and the port outlive either emitter.
class FrameEmitter final : public pmd::Emitter {
public:
    FrameEmitter(const Stream& stream, pmd::EthdevPort& port) : stream_(stream), port_(port) {}
    [[nodiscard]] std::size_t emit(port::Path& path, std::uint64_t first, std::size_t count,
                                   Instant now) noexcept override;

private:
    const Stream& stream_;
    pmd::EthdevPort& port_;
};

class DatagramEmitter final : public pmd::Emitter {
public:
    // Sends datagrams. The stream's fault is not below UDP.
    DatagramEmitter(const Stream& stream, port::UringPort& port) : stream_(stream), port_(port) {}
    [[nodiscard]] std::size_t emit(port::Path& path, std::uint64_t first, std::size_t count,
                                   Instant now) noexcept override;

private:
    static constexpr std::size_t kBurst = 64;
    const Stream& stream_;
    port::UringPort& port_;
    std::array<port::PacketRef, kBurst> buffers_{};
    std::array<port::TxPacket, kBurst> packets_{};
};

}  // namespace cairn::pktgen
