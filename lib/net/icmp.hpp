// ICMP and ICMPv6 echo: 8 bytes and data (RFC 792; RFC 4443, 4.1). One layout, two type numbers.
#pragma once

#include <cstdint>
#include <span>

#include "lib/base/endian.hpp"
#include "lib/net/checksum.hpp"
#include "lib/net/parsed.hpp"

namespace cairn::net {

constexpr std::uint8_t kIcmpEchoRequest = 8;
constexpr std::uint8_t kIcmpEchoReply = 0;
constexpr std::uint8_t kIcmpV6EchoRequest = 128;
constexpr std::uint8_t kIcmpV6EchoReply = 129;

struct RawIcmpEcho {
    std::uint8_t type;
    std::uint8_t code;
    Be16 checksum;
    Be16 id;
    Be16 sequence;
};
static_assert(sizeof(RawIcmpEcho) == 8 && alignof(RawIcmpEcho) == 1);

struct IcmpEcho {
    using Raw = RawIcmpEcho;
    static constexpr std::size_t kBytes = sizeof(Raw);

    std::uint8_t type = 0;       // one of the four above
    std::uint16_t checksum = 0;  // covers the message and, for ICMPv6, the pseudo-header
    std::uint16_t id = 0;
    std::uint16_t sequence = 0;

    // Parses an echo of either family with code 0; any other message is Unsupported. `message` is the whole ICMP
    // message. `pseudo` holds the pseudo-header for ICMPv6 and nothing for ICMP.
    [[nodiscard]] static Parsed<IcmpEcho> parse(std::span<const std::uint8_t> message, ChecksumSum pseudo) noexcept {
        if (message.size() < kBytes) {
            return Drop::Truncated;
        }
        pseudo.add(message);
        if (!pseudo.is_right()) {
            return Drop::BadChecksum;
        }
        const auto raw = read_raw<Raw>(message.data());
        const bool echo = raw.type == kIcmpEchoRequest || raw.type == kIcmpEchoReply ||
                          raw.type == kIcmpV6EchoRequest || raw.type == kIcmpV6EchoReply;
        if (!echo || raw.code != 0) {
            return Drop::Unsupported;
        }
        return IcmpEcho{raw.type, raw.checksum.get(), raw.id.get(), raw.sequence.get()};
    }
    void emit(Raw& raw) const noexcept { raw = {type, 0, Be16{checksum}, Be16{id}, Be16{sequence}}; }

    friend bool operator==(const IcmpEcho&, const IcmpEcho&) noexcept = default;
};

}  // namespace cairn::net
