// What ordinary datagrams to one queue pair have in common, as words that one comparison each stands for.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lib/base/endian.hpp"
#include "lib/wire/ud.hpp"

namespace cairn::roce {

// A datagram that fits() and has the source word of its peer needs no judgement of its BTH and DETH: its opcode,
// transport version, P_Key, destination and Q_Key are right, no switch has spoken (FECN, BECN), and it comes from that
// queue pair. Free are SE, MigReq and pad, which the reader looks at, AckReq and PSN. A datagram that does not fit is
// no error: it is judged the ordinary way.
class KnownStart {
public:
    static constexpr std::size_t kBytes = sizeof(wire::RawUd);

    // Fits nothing.
    KnownStart() noexcept = default;
    // Of SENDs without immediate data to `qpn`.
    KnownStart(Qpn qpn, Pkey pkey) noexcept {
        const wire::RawUd raw = wire::UdHeader{.to = qpn, .pkey = pkey}.raw(0);
        start_ = load(reinterpret_cast<const std::uint8_t*>(&raw)) & kFixed;
    }

    // `datagram`: kBytes of it can be read.
    [[nodiscard]] bool fits(const std::uint8_t* datagram) const noexcept { return (load(datagram) & kFixed) == start_; }
    // The word of datagrams that `from` sends with this Q_Key, to be compared with word_of() of one.
    [[nodiscard]] static std::uint64_t source_word(Qkey qkey, Qpn from) noexcept {
        const wire::RawUd raw = wire::UdHeader{.qkey = qkey, .from = from}.raw(0);
        return word_of(reinterpret_cast<const std::uint8_t*>(&raw));
    }
    [[nodiscard]] static std::uint64_t word_of(const std::uint8_t* datagram) noexcept {
        return load(datagram + offsetof(wire::RawUd, deth));
    }

private:
    // Of the first eight bytes of a BTH all but SE, MigReq and pad.
    // mutants: ud-known-start-fixed
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
