// eRPC packet header: 16 bytes after the DETH, big-endian. Version and kind, a byte each, replace the original's two
// bytes of padding. The original's 14 bytes follow. In bits they are: request type 8, message size 24, destination
// session 16, packet type 2, packet number 14, request number 44, magic 4.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "lib/base/endian.hpp"
#include "lib/base/time.hpp"
#include "lib/base/types.hpp"
#include "lib/roce/pace/congestion_control.hpp"
#include "lib/wire/ud.hpp"
#include "rpc/erpc/limits.hpp"

namespace cairn::erpc {

enum class Kind : std::uint8_t { Data = 0, Control = 1 };
// Rfr and CreditReturn belong to messages of several packets.
enum class PacketType : std::uint8_t { Request = 0, Rfr = 1, CreditReturn = 2, Response = 3 };

constexpr std::uint8_t kMagic = 11;

struct RawHeader {
    std::uint8_t version;
    std::uint8_t kind;
    std::uint8_t request_type;
    Be24 message_bytes;
    Be16 session;
    Be16 type_and_number;
    Be48 request_and_magic;

    [[nodiscard]] bool well_formed() const noexcept {
        return version == kHeaderVersion && kind <= 1 && (request_and_magic.get() & 0xfU) == kMagic;
    }
    // Returns the same bytes as two words, which are faster to read than ten fields.
    [[nodiscard]] std::array<Be64, 2> words() const noexcept { return std::bit_cast<std::array<Be64, 2>>(*this); }
};
static_assert(sizeof(RawHeader) == 16 && alignof(RawHeader) == 1);

// Bytes of a packet on the link in addition to its payload, for pacing.
constexpr std::uint32_t kPacketOverheadBytes =
    roce::kLinkOverheadBytes + std::uint32_t{wire::kUdOverheadBytes} + std::uint32_t{sizeof(RawHeader)};

// How long the answering port may have held the packet that is answered.
class HeldTime {
public:
    HeldTime() noexcept = default;
    [[nodiscard]] static constexpr HeldTime of(Duration held) noexcept {
        return from_wire(static_cast<std::uint8_t>(std::clamp<std::int64_t>(held.ns / kUnit.ns, 0, kLong)));
    }
    [[nodiscard]] static constexpr HeldTime from_wire(std::uint8_t units) noexcept {
        HeldTime held;
        held.units_ = units;
        return held;
    }
    [[nodiscard]] constexpr std::uint8_t on_wire() const noexcept { return units_; }
    // True if the time does not fit: it may be any longer time.
    [[nodiscard]] constexpr bool is_long() const noexcept { return units_ == kLong; }
    [[nodiscard]] constexpr Duration least() const noexcept { return kUnit * std::int64_t{units_}; }
    friend bool operator==(const HeldTime&, const HeldTime&) noexcept = default;

private:
    static constexpr Duration kUnit = microseconds(1);
    static constexpr std::uint8_t kLong = 255;  // 255 units or more

    std::uint8_t units_ = 0;
};

// Returns the bytes that a packet needs in a buffer: BTH, DETH, our header, payload, pad and ICRC.
[[nodiscard]] constexpr std::size_t room_for(std::size_t payload_bytes) noexcept {
    return wire::kUdOverheadBytes + sizeof(RawHeader) + ((payload_bytes + 3U) & ~std::size_t{3});
}

struct Header {
    Kind kind = Kind::Data;
    std::uint8_t request_type = 0;    // of a request and the first packet of a response; others have held() here
    std::uint32_t message_bytes = 0;  // whole message, without headers; 24 bits
    SessionId session{};              // the receiver's number of the session
    PacketType type = PacketType::Request;
    std::uint16_t packet_number = 0;   // 14 bits
    std::uint64_t request_number = 0;  // 44 bits

    // `raw` must be well_formed().
    [[nodiscard]] static Header parse(const RawHeader& raw) noexcept {
        const std::uint64_t first = raw.words()[0].get();
        const std::uint64_t second = raw.words()[1].get();
        Header header;
        header.kind = static_cast<Kind>((first >> 48U) & 0xffU);
        header.request_type = static_cast<std::uint8_t>(first >> 40U);
        header.message_bytes = static_cast<std::uint32_t>(first >> 16U) & 0xffffffU;
        header.session = SessionId{static_cast<std::uint16_t>(first)};
        header.type = static_cast<PacketType>(second >> 62U);
        header.packet_number = static_cast<std::uint16_t>((second >> 48U) & 0x3fffU);
        header.request_number = (second >> 4U) & kRequestNumberMask;
        return header;
    }
    // Writes by two stores of eight bytes: the ICRC is computed over these bytes soon after.
    void emit(RawHeader& raw) const noexcept {
        const std::uint64_t first = (std::uint64_t{kHeaderVersion} << 56U) | (static_cast<std::uint64_t>(kind) << 48U) |
                                    (std::uint64_t{request_type} << 40U) |
                                    (std::uint64_t{message_bytes & 0xffffffU} << 16U) | session.number();
        const std::uint64_t second = (static_cast<std::uint64_t>(type) << 62U) |
                                     (std::uint64_t{packet_number & 0x3fffU} << 48U) |
                                     ((request_number & kRequestNumberMask) << 4U) | kMagic;
        const std::array<Be64, 2> words{Be64{first}, Be64{second}};
        auto* const at = reinterpret_cast<std::uint8_t*>(&raw);
        std::memcpy(at, &words[0], sizeof(Be64));
        std::memcpy(at + sizeof(Be64), &words[1], sizeof(Be64));
    }
    // Returns the held time of a response packet other than the first: its receiver knows the request's type.
    [[nodiscard]] HeldTime held() const noexcept { return HeldTime::from_wire(request_type); }
    friend bool operator==(const Header&, const Header&) noexcept = default;
};

// The content of a credit return. It uses the fields of a data packet with other meanings.
struct CreditReturn {
    std::uint16_t newest = 0;    // number of the packet that it answers, 14 bits
    std::uint32_t in_order = 0;  // all packets with lower numbers have come
    HeldTime held;               // the packet's that it answers

    [[nodiscard]] static CreditReturn of(const Header& header) noexcept {
        return {header.packet_number, header.message_bytes, header.held()};
    }
    [[nodiscard]] Header header(SessionId to, std::uint64_t request_number) const noexcept {
        Header header;
        header.type = PacketType::CreditReturn;
        header.session = to;
        header.packet_number = newest;
        header.message_bytes = in_order;
        header.request_type = held.on_wire();
        header.request_number = request_number;
        return header;
    }
};

}  // namespace cairn::erpc
