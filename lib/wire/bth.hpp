// Base Transport Header: the first 12 bytes of every RoCEv2 packet (IBTA vol. 1, 9.2).
#pragma once

#include <cstdint>
#include <cstring>

#include "lib/base/endian.hpp"
#include "lib/base/types.hpp"

namespace cairn::wire {

// The bytes on the wire. Bth::parse reads them, Bth::emit writes them.
struct RawBth {
    std::uint8_t opcode;
    std::uint8_t flags;  // SE 1, MigReq 1, PadCnt 2, TVer 4
    Be16 pkey;
    std::uint8_t resv8a;  // FECN 1, BECN 1, reserved 6: not in the ICRC
    Be24 dest_qpn;
    std::uint8_t ack_req;  // AckReq 1, reserved 7
    Be24 psn;
};
static_assert(sizeof(RawBth) == 12 && alignof(RawBth) == 1);

// The values with a meaning.
struct Bth {
    using Raw = RawBth;
    static constexpr std::size_t kBytes = sizeof(Raw);

    std::uint8_t opcode = 0;
    bool solicited = false;
    bool migration = true;       // MigReq: 1 = migrated, as a peer without APM sends it
    std::uint8_t pad_count = 0;  // 0..3
    Pkey pkey{0xffff};
    bool fecn = false;
    bool becn = false;
    Qpn dest_qpn{};
    bool ack_request = false;
    Psn psn{};

    // Reads the 12 bytes at `raw`. The caller judges the header version (version_of).
    [[nodiscard]] static Bth parse(const RawBth& raw) noexcept {
        Bth bth;
        bth.load(raw);
        return bth;
    }
    // As parse(), into its final place: read_header() does so, too. Reads two words, as emit() writes them.
    void load(const RawBth& raw) noexcept {
        const auto* const at = reinterpret_cast<const std::uint8_t*>(&raw);
        const std::uint64_t first = reinterpret_cast<const Be64*>(at)->get();
        const std::uint32_t second = reinterpret_cast<const Be32*>(at + sizeof(Be64))->get();
        opcode = raw.opcode;
        solicited = (raw.flags & 0x80U) != 0;
        migration = (raw.flags & 0x40U) != 0;
        pad_count = pad_of(raw);
        pkey = Pkey{static_cast<std::uint16_t>(first >> 32U)};
        fecn = (raw.resv8a & 0x80U) != 0;
        becn = (raw.resv8a & 0x40U) != 0;
        dest_qpn = Qpn{static_cast<std::uint32_t>(first)};
        ack_request = (second & 0x80000000U) != 0;
        psn = Psn{second};
    }
    [[nodiscard]] static std::uint8_t version_of(const RawBth& raw) noexcept { return raw.flags & 0x0fU; }
    [[nodiscard]] static std::uint8_t pad_of(const RawBth& raw) noexcept { return (raw.flags >> 4U) & 3U; }
    // Writes all 12 bytes; their earlier values do not matter.
    void emit(RawBth& raw) const noexcept {
        const auto flags =
            static_cast<std::uint8_t>((solicited ? 0x80U : 0U) | (migration ? 0x40U : 0U) | ((pad_count & 3U) << 4U));
        const auto congestion = static_cast<std::uint8_t>((fecn ? 0x80U : 0U) | (becn ? 0x40U : 0U));
        // Two words are written, so that a copy of the header need not wait for stores of single bytes.
        const Be64 first{std::uint64_t{opcode} << 56U | std::uint64_t{flags} << 48U | std::uint64_t{pkey.value} << 32U |
                         std::uint64_t{congestion} << 24U | dest_qpn.value};
        const Be32 second{(ack_request ? 0x80000000U : 0U) | psn.value()};
        auto* const at = reinterpret_cast<std::uint8_t*>(&raw);
        std::memcpy(at, &first, sizeof(first));
        std::memcpy(at + sizeof(first), &second, sizeof(second));
    }

    friend bool operator==(const Bth&, const Bth&) noexcept = default;
};

// Returns the number of zeros after a payload of this length. Packets are whole words.
[[nodiscard]] constexpr std::uint8_t pad_for(std::size_t payload_bytes) noexcept {
    return static_cast<std::uint8_t>((4U - payload_bytes % 4U) % 4U);
}

// Returns true for the sizes that a path MTU may have (IBTA vol. 1, 11.2.5.2).
[[nodiscard]] constexpr bool is_path_mtu(std::uint32_t bytes) noexcept {
    return bytes == 256 || bytes == 512 || bytes == 1024 || bytes == 2048 || bytes == 4096;
}

// Returns true if the low 15 bits are equal and one of the two is a full member (IBTA vol. 1, 10.9).
[[nodiscard]] constexpr bool pkeys_match(Pkey ours, Pkey theirs) noexcept {
    return ((ours.value ^ theirs.value) & 0x7fffU) == 0 && ((ours.value | theirs.value) & 0x8000U) != 0;
}

}  // namespace cairn::wire
