// The common bytes of a session's small packets whose messages have the same type and size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lib/port/port.hpp"
#include "lib/roce/ud/known_start.hpp"
#include "rpc/erpc/header_words.hpp"

namespace cairn::erpc {

// A look has all bytes of BTH, DETH and our header except AckReq, PSN and the second word. It also has what the port
// reports of the packet: length, ECN bits and the verdict on the ICRC. Any check of these has the same result for two
// packets of the same look. Bytes after a packet and its IPv4 ID are not part of it. They differ within a batch of a
// socket, and no check reads them. The look of a new session fits no packet.
class PacketLook {
public:
    PacketLook() noexcept = default;
    // True if the packet has this look. `packet` has at least the headers, and `first` is its first word. The
    // comparison is in place: to build a second look takes seven instructions more.
    [[nodiscard]] bool is_of(const port::PacketRef& packet, FirstWord first) const noexcept {
        return start_ == start_of(packet) && source_ == roce::KnownStart::word_of(packet.data) && first_ == first &&
               port_ == port_word_of(packet);
    }
    [[nodiscard]] bool is_any() const noexcept { return start_ != 0; }
    void note(const port::PacketRef& packet, FirstWord first) noexcept {
        start_ = start_of(packet);
        source_ = roce::KnownStart::word_of(packet.data);
        first_ = first;
        port_ = port_word_of(packet);
    }

private:
    [[nodiscard]] static std::uint64_t start_of(const port::PacketRef& packet) noexcept {
        std::uint64_t word = 0;
        std::memcpy(&word, packet.data, sizeof(word));
        return word;
    }
    // Returns length, ECN bits and verdict.
    [[nodiscard]] static std::uint32_t port_word_of(const port::PacketRef& packet) noexcept {
        constexpr std::size_t kAt = offsetof(port::PacketRef, len);
        static_assert(offsetof(port::PacketRef, ecn) == kAt + 2 && offsetof(port::PacketRef, icrc_ok) == kAt + 3);
        std::uint32_t word = 0;
        std::memcpy(&word, reinterpret_cast<const std::uint8_t*>(&packet) + kAt, sizeof(word));
        return word;
    }

    std::uint64_t start_ = 0;  // start of the BTH; 0: no packet was noted, since no datagram has opcode 0
    std::uint64_t source_ = 0;
    FirstWord first_ = FirstWord::of(0, 0, {});
    std::uint32_t port_ = 0;
};

}  // namespace cairn::erpc
