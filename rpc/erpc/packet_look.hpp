// What small packets of one session that carry messages of one type and size have in common.
#pragma once

#include <cstdint>
#include <cstring>

#include "lib/port/port.hpp"
#include "lib/roce/ud/known_start.hpp"
#include "rpc/erpc/header_words.hpp"

namespace cairn::erpc {

// All bytes of BTH, DETH and our header but for AckReq, PSN and the second word; and the length. Two packets that look
// the same get the same verdicts of whoever judges these bytes. The look of a packet is never that of a new session.
class PacketLook {
public:
    PacketLook() noexcept = default;
    // `packet` has at least the headers.
    [[nodiscard]] static PacketLook of(const port::PacketRef& packet, FirstWord first) noexcept {
        PacketLook look;
        std::memcpy(&look.start_, packet.data, sizeof(look.start_));
        look.source_ = roce::KnownStart::word_of(packet.data);
        look.first_ = first;
        look.bytes_ = packet.len;
        return look;
    }
    [[nodiscard]] bool operator==(const PacketLook&) const noexcept = default;

private:
    std::uint64_t start_ = 0;  // of a BTH: opcode 0 is none of datagrams
    std::uint64_t source_ = 0;
    FirstWord first_ = FirstWord::of(0, 0, {});
    std::uint64_t bytes_ = 0;
};

}  // namespace cairn::erpc
