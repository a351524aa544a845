// Reads the datagrams of one socket, and cuts batches into the datagrams that were sent.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lib/broker/messages.hpp"

namespace cairn::broker {

class StrayReader {
public:
    // Receives once, without waiting, and calls `take` with each datagram. Returns false if there was none.
    template <class Take>
    [[nodiscard]] bool read(int socket, Take&& take) {
        Batch batch;
        if (!receive(socket, batch)) {
            return false;
        }
        std::uint16_t index = 0;
        for (auto rest = batch.bytes; !rest.empty(); ++index) {
            const std::size_t length = std::min(rest.size(), batch.segment_bytes);
            if (length <= port::kMaxUdpPayloadBytes) {
                take(Stray{batch.remote, batch.udp_source_port, index, batch.ecn, rest.first(length)});
            }
            rest = rest.subspan(length);
        }
        return true;
    }

private:
    struct Batch {
        net::IpAddress remote{};
        std::uint16_t udp_source_port = 0;
        std::uint8_t ecn = 0;
        std::size_t segment_bytes = 0;
        std::span<const std::uint8_t> bytes{};
    };
    [[nodiscard]] bool receive(int socket, Batch& batch);

    std::vector<std::uint8_t> room_ = std::vector<std::uint8_t>(65536);
};

}  // namespace cairn::broker
