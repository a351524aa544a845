#include "apps/pktgen/emitters.hpp"

#include <algorithm>
#include <span>

namespace cairn::pktgen {

std::size_t FrameEmitter::emit(port::Path& path, std::uint64_t first, std::size_t count, Instant) noexcept {
    return port_.transmit_frames(count, [this, &path, first](std::size_t i, std::span<std::uint8_t> out) {
        return make_frame(stream_, path, first + i, out);
    });
}

// Sends the datagrams. Datagrams that need no other ICRC than the port's leave in batches.
std::size_t DatagramEmitter::emit(port::Path& path, std::uint64_t first, std::size_t count, Instant now) noexcept {
    const std::size_t got = port_.allocate_burst(std::span(buffers_).first(std::min(count, kBurst)));
    for (std::size_t i = 0; i < got; ++i) {
        port::PacketRef& buffer = buffers_[i];
        buffer.path = &path;
        buffer.len = static_cast<std::uint16_t>(make_datagram(stream_, path, first + i, {buffer.data, buffer.room}));
        packets_[i] = {buffer, {}};
    }
    const std::span<port::TxPacket> packets = std::span(packets_).first(got);
    const std::size_t sent = layer_of(stream_.fault) == FaultLayer::Headers ? port_.transmit_burst(packets, now)
                                                                            : port_.transmit_as_is(packets);
    port_.release_burst(std::span(buffers_).subspan(sent, got - sent));
    return sent;
}

}  // namespace cairn::pktgen
