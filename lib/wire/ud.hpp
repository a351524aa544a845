// Unreliable datagrams on the wire: one packet each, BTH and DETH, then immediate data or none, payload and pad (IBTA
// vol. 1, 9.8.3). All senders compose them and all receivers judge them here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "lib/base/endian.hpp"
#include "lib/base/types.hpp"
#include "lib/wire/bth.hpp"
#include "lib/wire/drops.hpp"
#include "lib/wire/headers.hpp"
#include "lib/wire/icrc.hpp"
#include "lib/wire/opcode.hpp"

namespace cairn::wire {

constexpr std::uint8_t kUdSendOnly = opcode_of(Service::Ud, Operation::SendOnly);
constexpr std::uint8_t kUdSendOnlyImmediate = opcode_of(Service::Ud, Operation::SendOnlyImmediate);
// The destination of all datagrams to a multicast group (10.5.2.1).
constexpr Qpn kGroupQpn{0xffffff};

// The start of every datagram.
struct RawUd {
    RawBth bth;
    RawDeth deth;
};
static_assert(sizeof(RawUd) == 20 && alignof(RawUd) == 1);

// The bytes of a datagram that are neither payload nor pad: BTH, DETH and ICRC.
constexpr std::size_t kUdOverheadBytes = sizeof(RawUd) + kIcrcBytes;

// The headers of a datagram, without immediate data.
struct UdHeader {
    Qpn to{};
    Qkey qkey{};
    Qpn from{};
    Pkey pkey{0xffff};
    Psn psn{};
    bool solicited = false;
    bool has_immediate = false;

    // Returns the headers in front of a payload of `payload_bytes`.
    [[nodiscard]] RawUd raw(std::size_t payload_bytes) const noexcept {
        RawUd raw{};
        Bth bth;
        bth.opcode = has_immediate ? kUdSendOnlyImmediate : kUdSendOnly;
        bth.solicited = solicited;
        bth.pad_count = pad_for(payload_bytes);
        bth.pkey = pkey;
        bth.dest_qpn = to;
        bth.psn = psn;
        bth.emit(raw.bth);
        Deth{qkey, from}.emit(raw.deth);
        return raw;
    }
};

// The parts of a sound datagram. `payload` points into it.
struct UdParts {
    std::uint8_t* payload = nullptr;
    std::uint16_t payload_bytes = 0;
    bool has_immediate = false;
    std::uint32_t immediate = 0;
    Qpn to{};
    Qpn from{};
    Pkey pkey{};
    Qkey qkey{};
};

// Judges the form that all datagrams must have, for any receiver. Returns nullopt and writes `parts`, or returns the
// reason. `datagram` is BTH ... ICRC; the port checks the ICRC.
[[nodiscard]] inline std::optional<Drop> judge_ud(std::uint8_t* datagram, std::size_t bytes, UdParts& parts) noexcept {
    if (bytes < kUdOverheadBytes) {
        return Drop::Truncated;
    }
    const auto& raw = *reinterpret_cast<const RawUd*>(datagram);
    if (Bth::version_of(raw.bth) != 0) {
        return Drop::BadVersion;
    }
    const bool has_immediate = raw.bth.opcode == kUdSendOnlyImmediate;
    if (!has_immediate && raw.bth.opcode != kUdSendOnly) {
        return Drop::UnknownOpcode;
    }
    const std::size_t header_bytes = sizeof(RawUd) + (has_immediate ? ImmDt::kBytes : 0);
    if (bytes < header_bytes + kIcrcBytes) {
        return Drop::Truncated;
    }
    const std::size_t behind = bytes - header_bytes - kIcrcBytes;  // of payload and pad
    const std::size_t pad = Bth::pad_of(raw.bth);
    if (behind % 4 != 0) {
        return Drop::BadLength;
    }
    if (pad > behind) {
        return Drop::BadPad;
    }
    parts.payload = datagram + header_bytes;
    parts.payload_bytes = static_cast<std::uint16_t>(behind - pad);
    parts.has_immediate = has_immediate;
    parts.immediate = has_immediate ? reinterpret_cast<const Be32*>(datagram + sizeof(RawUd))->get() : 0;
    parts.to = Qpn{raw.bth.dest_qpn.get()};
    parts.from = Qpn{raw.deth.source_qpn.get()};
    parts.pkey = Pkey{raw.bth.pkey.get()};
    parts.qkey = Qkey{raw.deth.qkey.get()};
    return std::nullopt;
}

}  // namespace cairn::wire
