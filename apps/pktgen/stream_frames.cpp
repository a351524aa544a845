#include <algorithm>
#include <array>
#include <cstring>

#include "apps/pktgen/stream.hpp"
#include "lib/net/checksum.hpp"
#include "lib/net/ipv4.hpp"
#include "lib/wire/ud.hpp"

namespace cairn::pktgen {

namespace {

constexpr std::size_t kEthernet = port::Path::kEthernetBytes;

// Returns SplitMix64 of seed and serial: the same frame each time.
std::uint64_t random_of(std::uint64_t seed, std::uint64_t serial) noexcept {
    std::uint64_t mixed = seed + (serial + 1) * 0x9e3779b97f4a7c15U;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31U);
}

void flip(std::span<std::uint8_t> bytes, std::uint64_t choice) noexcept {
    bytes[choice % bytes.size()] ^= static_cast<std::uint8_t>(1U << (choice / bytes.size() % 8));
}

// A packet under construction: first its RoCE headers, then the finished datagram, then the frame around it.
struct Draft {
    const Stream& stream;
    std::uint64_t serial;
    std::uint64_t random;
    wire::RawUd& raw;
    std::span<std::uint8_t> datagram{};
    std::span<std::uint8_t> frame{};  // cut to the bytes that are sent
    bool v4 = true;

    [[nodiscard]] std::uint8_t* ip() const noexcept { return frame.data() + kEthernet; }
};

using Break = void (*)(Draft&) noexcept;

void nothing(Draft&) noexcept {}
void other_qpn(Draft& draft) noexcept {
    draft.raw.bth.dest_qpn.set(static_cast<std::uint32_t>((draft.stream.qpn.value + 1 + draft.serial) & 0xffffffU));
}
void other_pkey(Draft& draft) noexcept {
    draft.raw.bth.pkey.set(static_cast<std::uint16_t>(draft.stream.pkey.value ^ (1U + draft.serial % 0x7fff)));
}
void other_qkey(Draft& draft) noexcept {
    draft.raw.deth.qkey.set(draft.stream.qkey.value ^ static_cast<std::uint32_t>(1U + draft.serial));
}
void other_version(Draft& draft) noexcept {
    draft.raw.bth.flags = static_cast<std::uint8_t>(draft.raw.bth.flags | 1U);
}
void other_opcode(Draft& draft) noexcept {
    draft.raw.bth.opcode = static_cast<std::uint8_t>(draft.serial);
}
void flip_icrc(Draft& draft) noexcept {
    flip(draft.datagram.last(4), draft.random);
}
void flip_payload(Draft& draft) noexcept {
    flip(draft.datagram.subspan(wire::Bth::kBytes), draft.random);
}
void truncate_frame(Draft& draft) noexcept {
    draft.frame = draft.frame.first(kEthernet + draft.serial % (draft.frame.size() - kEthernet));
}
void break_ip_checksum(Draft& draft) noexcept {
    draft.ip()[draft.v4 ? 10 : 6] ^= 0x55;  // IPv6 has no checksum: its next header instead
}
// Makes the checksum right, so that the receiver notices the fault itself.
void right_ip_checksum(Draft& draft) noexcept {
    if (draft.v4) {
        draft.ip()[10] = draft.ip()[11] = 0;
        net::ChecksumSum sum;
        sum.add({draft.ip(), net::Ipv4Header::kBytes});
        draft.ip()[10] = static_cast<std::uint8_t>(sum.checksum() >> 8U);
        draft.ip()[11] = static_cast<std::uint8_t>(sum.checksum());
    }
}
void break_ip_length(Draft& draft) noexcept {
    draft.ip()[draft.v4 ? 2 : 4] ^= 0x10;
    right_ip_checksum(draft);
}
void break_udp_length(Draft& draft) noexcept {
    std::uint8_t& low = *(draft.datagram.data() - 3);
    low = static_cast<std::uint8_t>(low - 4);
}
void fragment(Draft& draft) noexcept {
    draft.ip()[6] = draft.v4 ? 0x20 : 44;  // more fragments, or the number of the fragment header
    right_ip_checksum(draft);
}
void randomise(Draft& draft) noexcept {
    for (std::size_t i = 0; i < draft.datagram.size(); ++i) {
        draft.datagram[i] = static_cast<std::uint8_t>(random_of(draft.random, i));
    }
}

// The change of a fault. It is in the headers before a right ICRC is computed, in the finished datagram, or in the
// frame around it.
struct Breaking {
    Fault fault;
    Break headers = nothing;
    Break datagram = nothing;
    Break frame = nothing;
};
constexpr std::array<Breaking, static_cast<std::size_t>(Fault::Count)> kBreakings{{
    {Fault::None},
    {Fault::Icrc, nothing, flip_icrc},
    {Fault::Payload, nothing, flip_payload},
    {Fault::Truncated, nothing, nothing, truncate_frame},  // make_datagram() cuts datagrams itself
    {Fault::Qpn, other_qpn},
    {Fault::Pkey, other_pkey},
    {Fault::Qkey, other_qkey},
    {Fault::Version, other_version},
    {Fault::Opcode, other_opcode},
    {Fault::Pad},  // compose() sends a byte too many
    {Fault::IpChecksum, nothing, nothing, break_ip_checksum},
    {Fault::IpLength, nothing, nothing, break_ip_length},
    {Fault::UdpLength, nothing, nothing, break_udp_length},
    {Fault::Fragment, nothing, nothing, fragment},
    {Fault::Random, nothing, randomise},
}};
static_assert([] {
    for (std::size_t i = 0; i < kBreakings.size(); ++i) {
        if (kBreakings[i].fault != static_cast<Fault>(i)) {
            return false;
        }
    }
    return true;
}());

struct FaultText {
    std::string_view name;
    FaultLayer layer;
};
constexpr std::array<FaultText, kBreakings.size()> kFaultTexts{{
#define CAIRN_X(enumerator, name, text, layer) {name, FaultLayer::layer},
    CAIRN_PKTGEN_FAULTS(CAIRN_X)
#undef CAIRN_X
}};

const Breaking& breaking_of(const Stream& stream) noexcept {
    return kBreakings[static_cast<std::size_t>(stream.fault)];
}

// Writes the datagram to the front of `out`, with the faults that concern it.
void compose(Draft& draft, port::Path& path, std::span<std::uint8_t> out) noexcept {
    const Stream& stream = draft.stream;
    draft.raw = wire::UdHeader{stream.qpn, stream.qkey, stream.source_qpn, stream.pkey,
                               Psn{static_cast<std::uint32_t>(draft.serial)}}
                    .raw(stream.payload_bytes);
    breaking_of(stream).headers(draft);

    draft.v4 = path.is_v4();
    draft.datagram = out.first(datagram_bytes(stream));
    std::fill(draft.datagram.begin(), draft.datagram.end(), std::uint8_t{0});
    std::uint8_t* at = draft.datagram.data();
    std::memcpy(at, &draft.raw, sizeof(draft.raw));
    for (std::size_t i = 0; i < stream.payload_bytes; ++i) {
        at[sizeof(draft.raw) + i] = static_cast<std::uint8_t>(draft.serial + i);
    }
    const auto bytes = static_cast<std::uint16_t>(draft.datagram.size());
    const std::uint32_t icrc = path.icrc(port::Direction::Transmit, at, bytes);
    std::memcpy(at + bytes - wire::kIcrcBytes, &icrc, sizeof(icrc));
    breaking_of(stream).datagram(draft);
}

}  // namespace

FaultLayer layer_of(Fault fault) noexcept {
    return kFaultTexts[static_cast<std::size_t>(fault)].layer;
}

std::string_view name_of(Fault fault) noexcept {
    return kFaultTexts[static_cast<std::size_t>(fault)].name;
}

std::size_t datagram_bytes(const Stream& stream) noexcept {
    const std::size_t misfit = stream.fault == Fault::Pad ? 1 : 0;
    return wire::kUdOverheadBytes + stream.payload_bytes + wire::pad_for(stream.payload_bytes) + misfit;
}

std::size_t frame_bytes(const Stream& stream) noexcept {
    const bool v4 = stream.destination.is_v4();
    return datagram_bytes(stream) + (v4 ? port::Path::kLowerBytesV4 : port::Path::kLowerBytesV6);
}

std::size_t make_frame(const Stream& stream, port::Path& path, std::uint64_t serial,
                       std::span<std::uint8_t> out) noexcept {
    wire::RawUd raw{};
    Draft draft{stream, serial, random_of(stream.seed, serial), raw};
    const std::size_t lower = path.lower_bytes();
    compose(draft, path, out.subspan(lower));
    draft.frame = out.first(lower + draft.datagram.size());
    path.write_lower_headers(draft.datagram.data(), static_cast<std::uint16_t>(draft.datagram.size()));
    breaking_of(stream).frame(draft);
    return draft.frame.size();
}

std::size_t make_datagram(const Stream& stream, port::Path& path, std::uint64_t serial,
                          std::span<std::uint8_t> out) noexcept {
    wire::RawUd raw{};
    Draft draft{stream, serial, random_of(stream.seed, serial), raw};
    compose(draft, path, out);
    return stream.fault == Fault::Truncated ? serial % draft.datagram.size() : draft.datagram.size();
}

}  // namespace cairn::pktgen
