// UDP header: 8 bytes (RFC 768).
#pragma once

#include <cstdint>
#include <span>

#include "lib/base/endian.hpp"
#include "lib/net/checksum.hpp"
#include "lib/net/parsed.hpp"

namespace cairn::net {

constexpr std::uint16_t kRoceUdpPort = 4791;  // IBTA vol. 1, A17.3.2

struct RawUdp {
    Be16 source_port;
    Be16 destination_port;
    Be16 bytes;
    Be16 checksum;
};
static_assert(sizeof(RawUdp) == 8 && alignof(RawUdp) == 1);

struct UdpHeader {
    using Raw = RawUdp;
    static constexpr std::size_t kBytes = sizeof(Raw);

    std::uint16_t source_port = 0;
    std::uint16_t destination_port = 0;
    std::uint16_t bytes = 0;     // of header and payload
    std::uint16_t checksum = 0;  // 0: none

    // Parses the header. `datagram` starts at the header and ends where the IP payload ends.
    [[nodiscard]] static Parsed<UdpHeader> parse(std::span<const std::uint8_t> datagram) noexcept {
        if (datagram.size() < kBytes) {
            return Drop::Truncated;
        }
        const auto raw = read_raw<Raw>(datagram.data());
        const UdpHeader header{raw.source_port.get(), raw.destination_port.get(), raw.bytes.get(), raw.checksum.get()};
        if (header.bytes < kBytes || header.bytes > datagram.size()) {
            return Drop::BadLength;
        }
        return header;
    }
    void emit(Raw& raw) const noexcept {
        raw = {Be16{source_port}, Be16{destination_port}, Be16{bytes}, Be16{checksum}};
    }

    friend bool operator==(const UdpHeader&, const UdpHeader&) noexcept = default;
};

// Returns true if the sum over pseudo-header and datagram (header ... payload) is right. A checksum field of zero means
// that there is none; the caller judges that.
[[nodiscard]] inline bool udp_checksum_is_right(const IpAddress& source, const IpAddress& destination,
                                                std::span<const std::uint8_t> datagram) noexcept {
    ChecksumSum sum;
    sum.add_pseudo_header(source, destination, kProtocolUdp, static_cast<std::uint32_t>(datagram.size()));
    sum.add(datagram);
    return sum.is_right();
}

}  // namespace cairn::net
