// The common words of ordinary datagrams to one queue pair: one comparison each replaces judging their fields.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lib/base/endian.hpp"
#include "lib/wire/ud.hpp"

namespace cairn::roce {

// A datagram that fits() and has the source word of its peer needs no judgement of its BTH and DETH. Its opcode,
// transport version, P_Key, destination and Q_Key are right, no switch has set FECN or BECN, and it comes from that
// queue pair. Free are SE, MigReq and pad, which the reader looks at, and AckReq and PSN. A datagram that does not fit
// is no error: it is judged the ordinary way.
class KnownStart {
public:
    static constexpr std::size_t kBytes = sizeof(wire::RawUd);

    // Makes a start that no datagram fits.
    KnownStart() noexcept = default;
    // Makes the start of SENDs without immediate data to `qpn`.
    KnownStart(Qpn qpn, Pkey pkey) noexcept {
        const wire::RawUd raw = wire::UdHeader{.to = qpn, .pkey = pkey}.raw(0);
        start_ = load(reinterpret_cast<const std::uint8_t*>(&raw)) & kFixed;
    }

    // Returns true if the datagram begins so. kBytes of it can be read.
    [[nodiscard]] bool fits(const std::uint8_t* datagram) const noexcept { return (load(datagram) & kFixed) == start_; }
    // Returns the word of datagrams that `from` sends with this Q_Key, to be compared with a datagram's word_of().
    [[nodiscard]] static std::uint64_t source_word(Qkey qkey, Qpn from) noexcept {
        const wire::RawUd raw = wire::UdHeader{.qkey = qkey, .from = from}.raw(0);
        return word_of(reinterpret_cast<const std::uint8_t*>(&raw));
    }
    [[nodiscard]] static std::uint64_t word_of(const std::uint8_t* datagram) noexcept {
        return load(datagram + offsetof(wire::RawUd, deth));
    }

private:
    // All of the first eight bytes of a BTH but SE, MigReq and pad.
    static constexpr std::uint64_t kFixed =
        std::endian::native == std::endian::little ? 0xffffffffffff0fffU : 0xff0fffffffffffffU;

    [[nodiscard]] static std::uint64_t load(const std::uint8_t* at) noexcept {
        std::uint64_t word = 0;
        std::memcpy(&word, at, sizeof(word));
        return word;
    }

    std::uint64_t start_ = ~kFixed;  // no datagram's
};

}  // namespace cairn::roce
