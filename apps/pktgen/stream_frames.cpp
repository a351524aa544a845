#include <algorithm>
#include <array>
#include <cstring>

#include "apps/pktgen/stream.hpp"
#include "lib/net/checksum.hpp"
#include "lib/net/ipv4.hpp"
#include "lib/roce/ud.hpp"

namespace cairn::pktgen {

namespace {

constexpr std::size_t kEthernet = port::Path::kEthernetBytes;

// SplitMix64 of seed and serial: the same frame each time.
std::uint64_t random_of(std::uint64_t seed, std::uint64_t serial) noexcept {
    std::uint64_t mixed = seed + (serial + 1) * 0x9e3779b97f4a7c15U;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31U);
}

void flip(std::span<std::uint8_t> bytes, std::uint64_t choice) noexcept {
    bytes[choice % bytes.size()] ^= static_cast<std::uint8_t>(1U << (choice / bytes.size() % 8));
}

// A packet under construction: its RoCE headers first, later the finished frame.
struct Draft {
    const Stream& stream;
    std::uint64_t serial;
    std::uint64_t random;
    roce::RawUd& raw;
    std::span<std::uint8_t> frame{};  // cut to what is sent
    std::size_t lower = 0;

    [[nodiscard]] std::uint8_t* ip() const noexcept { return frame.data() + kEthernet; }
    [[nodiscard]] bool v4() const noexcept { return stream.source.is_v4(); }
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
    draft.raw.qkey.set(draft.stream.qkey.value ^ static_cast<std::uint32_t>(1U + draft.serial));
}
void other_version(Draft& draft) noexcept {
    draft.raw.bth.flags = static_cast<std::uint8_t>(draft.raw.bth.flags | 1U);
}
void other_opcode(Draft& draft) noexcept {
    draft.raw.bth.opcode = static_cast<std::uint8_t>(draft.serial);
}
void flip_icrc(Draft& draft) noexcept {
    flip(draft.frame.last(4), draft.random);
}
void flip_payload(Draft& draft) noexcept {
    flip(draft.frame.subspan(draft.lower + wire::Bth::kBytes), draft.random);
}
void truncate(Draft& draft) noexcept {
    draft.frame = draft.frame.first(kEthernet + draft.serial % (draft.frame.size() - kEthernet));
}
void break_ip_checksum(Draft& draft) noexcept {
    draft.ip()[draft.v4() ? 10 : 6] ^= 0x55;  // IPv6 has none: its next header
}
// So that the fault itself is noticed, not the checksum over it.
void right_ip_checksum(Draft& draft) noexcept {
    if (draft.v4()) {
        draft.ip()[10] = draft.ip()[11] = 0;
        net::ChecksumSum sum;
        sum.add({draft.ip(), net::Ipv4Header::kBytes});
        draft.ip()[10] = static_cast<std::uint8_t>(sum.checksum() >> 8U);
        draft.ip()[11] = static_cast<std::uint8_t>(sum.checksum());
    }
}
void break_ip_length(Draft& draft) noexcept {
    draft.ip()[draft.v4() ? 2 : 4] ^= 0x10;
    right_ip_checksum(draft);
}
void break_udp_length(Draft& draft) noexcept {
    draft.frame[draft.lower - 3] = static_cast<std::uint8_t>(draft.frame[draft.lower - 3] - 4);
}
void fragment(Draft& draft) noexcept {
    draft.ip()[6] = draft.v4() ? 0x20 : 44;  // more fragments, or the fragment header's number
    right_ip_checksum(draft);
}
void randomise(Draft& draft) noexcept {
    for (std::size_t i = draft.lower; i < draft.frame.size(); ++i) {
        draft.frame[i] = static_cast<std::uint8_t>(random_of(draft.random, i));
    }
}

// What each fault does: to the headers, before a right ICRC is put over them, and to the finished frame.
struct Breaking {
    Fault fault;
    Break headers;
    Break frame;
};
constexpr std::array<Breaking, static_cast<std::size_t>(Fault::Count)> kBreakings{{
    {Fault::None, nothing, nothing},
    {Fault::Icrc, nothing, flip_icrc},
    {Fault::Payload, nothing, flip_payload},
    {Fault::Truncated, nothing, truncate},
    {Fault::Qpn, other_qpn, nothing},
    {Fault::Pkey, other_pkey, nothing},
    {Fault::Qkey, other_qkey, nothing},
    {Fault::Version, other_version, nothing},
    {Fault::Opcode, other_opcode, nothing},
    {Fault::Pad, nothing, nothing},  // make_frame() sends a byte too many
    {Fault::IpChecksum, nothing, break_ip_checksum},
    {Fault::IpLength, nothing, break_ip_length},
    {Fault::UdpLength, nothing, break_udp_length},
    {Fault::Fragment, nothing, fragment},
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

}  // namespace

std::size_t make_frame(const Stream& stream, port::Path& path, std::uint64_t serial, std::span<std::uint8_t> out) {
    const Breaking& breaking = kBreakings[static_cast<std::size_t>(stream.fault)];
    roce::RawUd raw{};
    Draft draft{stream, serial, random_of(stream.seed, serial), raw};
    wire::Bth bth;
    bth.opcode = roce::kUdSendOnly;
    bth.pkey = stream.pkey;
    bth.dest_qpn = stream.qpn;
    bth.pad_count = static_cast<std::uint8_t>((4U - stream.payload_bytes % 4U) % 4U);
    bth.psn = Psn{static_cast<std::uint32_t>(serial)};
    bth.emit(raw.bth);
    raw.qkey.set(stream.qkey.value);
    raw.source_qpn.set(stream.source_qpn.value);
    breaking.headers(draft);

    draft.lower = path.lower_bytes();
    const std::size_t misfit = stream.fault == Fault::Pad ? 1 : 0;
    const std::size_t udp_payload = sizeof(raw) + stream.payload_bytes + bth.pad_count + misfit + 4U;
    draft.frame = out.first(draft.lower + udp_payload);
    std::fill(draft.frame.begin(), draft.frame.end(), std::uint8_t{0});
    std::uint8_t* at = draft.frame.data() + draft.lower;
    std::memcpy(at, &raw, sizeof(raw));
    for (std::size_t i = 0; i < stream.payload_bytes; ++i) {
        at[sizeof(raw) + i] = static_cast<std::uint8_t>(serial + i);
    }
    path.seal(at, static_cast<std::uint16_t>(udp_payload));
    breaking.frame(draft);
    return draft.frame.size();
}

}  // namespace cairn::pktgen
