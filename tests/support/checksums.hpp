// Recomputes the checksums of an edited frame, so that the edit itself is judged.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/net/checksum.hpp"

namespace cairn::test {

// Writes the checksum over `before` and the bytes of the frame from `from` on into the field at `at`.
inline void put_checksum(std::span<std::uint8_t> frame, std::size_t at, net::ChecksumSum before, std::size_t from,
                         std::size_t bytes) {
    frame[at] = frame[at + 1] = 0;
    before.add(frame.subspan(from, bytes));
    frame[at] = static_cast<std::uint8_t>(before.checksum() >> 8U);
    frame[at + 1] = static_cast<std::uint8_t>(before.checksum());
}

// Mends the checksums of an Ethernet frame: the IPv4 header's and its ICMP message's, or an ICMPv6 message's.
inline void mend_checksums(std::span<std::uint8_t> frame) {
    constexpr std::size_t kIp = 14;
    const auto word = [frame](std::size_t at) { return (std::size_t{frame[at]} << 8U) | frame[at + 1]; };
    if (frame.size() >= kIp + 20 && word(12) == 0x0800) {
        put_checksum(frame, kIp + 10, {}, kIp, 20);
        const std::size_t total = word(kIp + 2);
        if (frame[kIp + 9] == net::kProtocolIcmp && total >= 24 && kIp + total <= frame.size()) {
            put_checksum(frame, kIp + 22, {}, kIp + 20, total - 20);
        }
    } else if (frame.size() >= kIp + 40 && word(12) == 0x86dd) {
        const std::size_t bytes = word(kIp + 4);
        if (frame[kIp + 6] == net::kProtocolIcmpV6 && bytes >= 4 && kIp + 40 + bytes <= frame.size()) {
            net::ChecksumSum pseudo;
            pseudo.add(frame.subspan(kIp + 8, 32));
            pseudo.add_word(static_cast<std::uint16_t>(bytes));
            pseudo.add_word(net::kProtocolIcmpV6);
            put_checksum(frame, kIp + 42, pseudo, kIp + 40, bytes);
        }
    }
}

}  // namespace cairn::test
