// What small packets of one session that carry messages of one type and size have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lib/port/port.hpp"
#include "lib/roce/ud/known_start.hpp"
#include "rpc/erpc/header_words.hpp"

namespace cairn::erpc {

// All bytes of BTH, DETH and our header but for AckReq, PSN and the second word; and what the port says of it: length,
// room, IP ID, ECN bits and the verdict on its ICRC. Two packets that look the same get the same verdicts of whoever
// judges these. The look of a packet is never that of a new session.
class PacketLook {
public:
    PacketLook() noexcept = default;
    // `packet` has at least the headers, `first` is its first word. Compared in place: a look that was put together for
    // the comparison cost seven instructions more.
    // mutants: erpc-packet-look-is-of
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
    // All of a PacketRef from its length on.
    [[nodiscard]] static std::uint64_t port_word_of(const port::PacketRef& packet) noexcept {
        static_assert(offsetof(port::PacketRef, len) + sizeof(std::uint64_t) == sizeof(port::PacketRef));
        std::uint64_t word = 0;
        std::memcpy(&word, reinterpret_cast<const std::uint8_t*>(&packet) + offsetof(port::PacketRef, len),
                    sizeof(word));
        return word;
    }

    std::uint64_t start_ = 0;  // of a BTH: opcode 0 is none of datagrams
    std::uint64_t source_ = 0;
    FirstWord first_ = FirstWord::of(0, 0, {});
    std::uint64_t port_ = 0;
};

}  // namespace cairn::erpc
