#include "lib/port/path.hpp"

#include <cstddef>
#include <cstring>

#include "lib/port/port.hpp"
#include "lib/wire/icrc.hpp"

#ifdef __SSE4_1__
#include <immintrin.h>
#endif

namespace cairn::port {

namespace {

constexpr std::size_t kIp = Path::kEthernetBytes;
constexpr std::uint16_t kUdpBytes = 8;
constexpr std::uint8_t kOnes = 0xff;
constexpr std::uint16_t kIcrc = 4;
constexpr std::uint16_t kLeastPayload = 12 + kIcrc;  // of UDP: a BTH and an ICRC
constexpr std::size_t kWord = 4;                     // BTH bytes before the one that reads as ones

void put16(std::uint8_t* at, std::uint32_t value) noexcept {
    at[0] = static_cast<std::uint8_t>(value >> 8U);
    at[1] = static_cast<std::uint8_t>(value);
}

std::uint32_t get16(const std::uint8_t* at) noexcept {
    return (std::uint32_t{at[0]} << 8U) | at[1];
}

std::uint32_t get_word32(const std::uint8_t* at) noexcept {
    std::uint32_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    return word;
}

std::uint64_t get_word(const std::uint8_t* at) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    return word;
}

// Blocks of 16 or 32 bytes, loaded straight from where they lie.
using NarrowBlock = std::uint64_t __attribute__((vector_size(16)));
using WideBlock = std::uint64_t __attribute__((vector_size(32)));
// Clang assumes that a reference to a block is aligned; the member of a packed struct lies anywhere.
template <class Vector>
struct [[gnu::packed, gnu::may_alias]] Loose {
    Vector block;
};

template <class Vector>
inline const Loose<Vector>& loose(const std::uint8_t* at) noexcept {
    return *reinterpret_cast<const Loose<Vector>*>(at);
}

inline bool none_of(NarrowBlock bits, NarrowBlock mask) noexcept {
#ifdef __SSE4_1__
    return _mm_testz_si128(reinterpret_cast<__m128i>(bits), reinterpret_cast<__m128i>(mask)) != 0;
#else
    bits &= mask;
    return (bits[0] | bits[1]) == 0;
#endif
}

inline bool is_zero(const WideBlock& bits) noexcept {
#ifdef __AVX__
    return _mm256_testz_si256(reinterpret_cast<__m256i>(bits), reinterpret_cast<__m256i>(bits)) != 0;
#else
    return (bits[0] | bits[1] | bits[2] | bits[3]) == 0;
#endif
}

// Returns the bits of a frame's first bytes that must equal a template's.
template <std::size_t kBytes>
using Mask = std::array<std::uint8_t, kBytes>;

struct Field {
    std::size_t at;
    std::size_t bytes;
    std::uint8_t bits = 0xff;
};

template <std::size_t kBytes, std::size_t kFields>
consteval Mask<kBytes> mask_of(const std::array<Field, kFields>& fields) {
    Mask<kBytes> mask{};
    for (const Field& field : fields) {
        for (std::size_t i = 0; i < field.bytes; ++i) {
            mask[field.at + i] = field.bits;
        }
    }
    return mask;
}

// The differences between the two families in the work below. kConstant leaves out fields that are judged elsewhere or
// free: source MAC, traffic class, lengths, TTL, IPv4 checksum. Masks reach into the BTH, so that they are whole
// blocks; nothing is compared there. kWide is where wide blocks start that hold all from the IP header to the BTH's
// first word.
struct V4 {
    static constexpr std::size_t kLower = Path::kLowerBytesV4;
    static constexpr auto kConstant = mask_of<48>(std::array<Field, 6>{{{0, 6},      // destination MAC
                                                                        {12, 3},     // EtherType, version and IHL
                                                                        {18, 4},     // ID, flags and offset
                                                                        {23, 1},     // protocol
                                                                        {26, 12},    // addresses, ports
                                                                        {40, 2}}});  // UDP checksum
    static constexpr std::array<std::size_t, 1> kWide{kIp};
};
struct V6 {
    static constexpr std::size_t kLower = Path::kLowerBytesV6;
    static constexpr auto kConstant = mask_of<64>(std::array<Field, 6>{{{0, 6},         // destination MAC
                                                                        {12, 2},        // EtherType
                                                                        {14, 1, 0xf0},  // version
                                                                        {20, 1},        // next header
                                                                        {22, 36},       // addresses, ports
                                                                        {60, 2}}});     // UDP checksum
    static constexpr std::array<std::size_t, 2> kWide{kIp, kLower + kWord - sizeof(WideBlock)};
};

template <std::size_t kBytes>
inline bool agree(const std::uint8_t* frame, const std::uint8_t* expected, const Mask<kBytes>& mask) noexcept {
    NarrowBlock difference{};
    for (std::size_t at = 0; at < kBytes; at += sizeof(NarrowBlock)) {
        difference |= (loose<NarrowBlock>(frame + at).block ^ loose<NarrowBlock>(expected + at).block) &
                      loose<NarrowBlock>(mask.data() + at).block;
    }
    return none_of(difference, difference);
}

// Returns true if a frame's headers up to the BTH's first word are these, the source MAC among them.
template <class Family>
inline bool has_headers(const std::uint8_t* frame, const std::uint8_t* expected) noexcept {
    WideBlock difference{};
    for (const std::size_t at : Family::kWide) {
        difference |= loose<WideBlock>(frame + at).block ^ loose<WideBlock>(expected + at).block;
    }
    const NarrowBlock ethernet = loose<NarrowBlock>(frame).block ^ loose<NarrowBlock>(expected).block;
    return none_of(ethernet, ethernet) && is_zero(difference);
}

std::uint32_t fold(std::uint32_t sum) noexcept {
    sum = (sum & 0xffffU) + (sum >> 16U);
    return (sum & 0xffffU) + (sum >> 16U);
}

// Returns true if the one's complement sum of the 20 bytes is all ones, as a right checksum makes it. The sum of 32-bit
// words in any byte order gives the same verdict (RFC 1071, 2): it is a multiple of 0xffff, and never 0.
bool checksum_is_right(const std::uint8_t* ip) noexcept {
    const std::uint64_t first = get_word(ip);
    const std::uint64_t second = get_word(ip + 8);
    std::uint32_t last = 0;
    std::memcpy(&last, ip + 16, sizeof(last));
    const std::uint64_t sum = (first >> 32U) + (first & 0xffffffffU) + (second >> 32U) + (second & 0xffffffffU) + last;
    return sum % 0xffffU == 0;
}

}  // namespace

void Path::write_lower_headers(std::uint8_t* udp_payload, std::uint16_t udp_payload_bytes) const noexcept {
    describe_lower_headers(Direction::Transmit, udp_payload - lower_bytes(), udp_payload_bytes, 0, 0);
}

void Path::describe_lower_headers(Direction direction, std::uint8_t* out, std::uint16_t udp_payload_bytes,
                                  std::uint16_t ip_id, std::uint8_t ecn) const noexcept {
    const std::size_t lower = lower_bytes();
    std::memcpy(out, (direction == Direction::Transmit ? transmit_header_ : receive_header_).data(), lower);
    const std::uint32_t udp_bytes = udp_payload_bytes + std::uint32_t{kUdpBytes};
    std::uint8_t* const ip = out + kIp;
    put16(out + lower - 4, udp_bytes);
    if (!is_v4_) {
        put16(ip + 4, udp_bytes);
        ip[1] = static_cast<std::uint8_t>(ip[1] | (ecn << 4U));
        return;
    }
    ip[1] = static_cast<std::uint8_t>(ip[1] | ecn);
    put16(ip + 2, udp_bytes + 20);
    put16(ip + 4, ip_id);
    std::uint32_t sum = 0;
    for (std::size_t at = 0; at < 20; at += 2) {
        sum += at == 10 ? 0U : get16(ip + at);
    }
    put16(ip + 10, ~fold(sum));
}

bool Path::matches_received(const std::uint8_t* frame, std::size_t frame_bytes) const noexcept {
    const std::uint8_t* ip = frame + kIp;
    if (is_v4_) {
        const std::uint32_t udp_bytes = get16(frame + kLowerBytesV4 - 4);
        return agree(frame, receive_header_.data(), V4::kConstant) && get16(ip + 2) == udp_bytes + 20 &&
               kIp + 20 + udp_bytes <= frame_bytes && udp_bytes >= kUdpBytes && checksum_is_right(ip);
    }
    const std::uint32_t udp_bytes = get16(frame + kLowerBytesV6 - 4);
    return agree(frame, receive_header_.data(), V6::kConstant) && get16(ip + 4) == udp_bytes &&
           kIp + 40 + udp_bytes <= frame_bytes && udp_bytes >= kUdpBytes;
}

inline std::uint8_t Path::ecn_of(const std::uint8_t* frame) const noexcept {
    const std::uint8_t traffic_class = frame[kIp + 1];
    return static_cast<std::uint8_t>((is_v4_ ? traffic_class : traffic_class >> 4U) & 3U);
}

void Path::make_shape(Shape& shape, Direction direction, std::uint32_t bth_word,
                      std::uint16_t udp_payload_bytes) const noexcept {
    const std::size_t lower = lower_bytes();
    std::uint8_t* const header = shape.header.data();
    describe_lower_headers(direction, header, udp_payload_bytes, 0, 0);
    std::memcpy(header + lower, &bth_word, kWord);
    shape.ecn = ecn_of(header);
    shape.bth_word = bth_word;
    shape.udp_payload_bytes = udp_payload_bytes;
    shape.least_bytes = static_cast<std::uint32_t>(lower) + udp_payload_bytes;
    const std::uint32_t before = wire::icrc_lower_state({header + kIp, lower - kIp});
    shape.rest = wire::CrcRuns(wire::crc32(before, header + lower, kWord),
                               std::size_t{udp_payload_bytes} - kWord - kIcrc, kOnes);
}

Path::Shape& Path::ready_shape(Direction direction, std::uint32_t bth_word, std::uint16_t udp_payload_bytes) noexcept {
    Shape& shape = shape_for(direction, bth_word, udp_payload_bytes);
    if (!shape.is_of(bth_word, udp_payload_bytes)) {
        make_shape(shape, direction, bth_word, udp_payload_bytes);
    }
    return shape;
}

std::uint32_t Path::icrc_of_headers(Direction direction, const std::uint8_t* bth, std::size_t header_bytes,
                                    std::uint16_t udp_payload_bytes) noexcept {
    const Shape& shape = ready_shape(direction, get_word32(bth), udp_payload_bytes);
    return wire::CrcRuns(shape.rest.crc_before(), header_bytes - kWord, kOnes).crc_of(bth + kWord).crc;
}

std::uint32_t Path::icrc(Direction direction, const std::uint8_t* bth, std::uint16_t udp_payload_bytes) noexcept {
    const wire::CrcRuns& rest = ready_shape(direction, get_word32(bth), udp_payload_bytes).rest;
    return (rest.are_small() ? rest.crc_of_small(bth + kWord) : rest.crc_of(bth + kWord)).crc;
}

template <class Family>
inline void Path::seal_known(const Shape& shape, std::uint8_t* bth) noexcept {
    std::memcpy(bth - Family::kLower, shape.header.data(), Family::kLower);
    const wire::CrcRuns::End end = shape.rest.crc_of_small(bth + kWord);
    std::memcpy(bth + (end.behind - bth), &end.crc, sizeof(end.crc));
}

void Path::seal(std::uint8_t* bth, std::uint16_t udp_payload_bytes) noexcept {
    const std::uint32_t bth_word = get_word32(bth);
    const Shape& shape = shape_for(Direction::Transmit, bth_word, udp_payload_bytes);
    if (!shape.is_of(bth_word, udp_payload_bytes) || !shape.rest.are_small()) [[unlikely]] {
        return seal_other(bth, udp_payload_bytes);
    }
    return is_v4_ ? seal_known<V4>(shape, bth) : seal_known<V6>(shape, bth);
}

void Path::seal_other(std::uint8_t* bth, std::uint16_t udp_payload_bytes) noexcept {
    const Shape& shape = ready_shape(Direction::Transmit, get_word32(bth), udp_payload_bytes);
    const std::size_t lower = lower_bytes();
    std::memcpy(bth - lower, shape.header.data(), lower);
    const std::uint32_t crc = shape.rest.crc_of(bth + kWord).crc;
    std::memcpy(bth + udp_payload_bytes - kIcrc, &crc, sizeof(crc));
}

namespace {

inline Path::Arrival judged(const wire::CrcRuns::End& end, PacketRef& out) noexcept {
    if (end.crc == get_word32(end.behind)) [[likely]] {
        return Path::Arrival::Whole;
    }
    out.icrc_ok = false;
    return Path::Arrival::BadIcrc;
}

[[gnu::noinline]] Path::Arrival judge_rest(const wire::CrcRuns& rest, PacketRef& out) noexcept {
    return judged(rest.crc_of(out.data + kWord), out);
}

}  // namespace

Path::Arrival Path::judge_arrival(const std::uint8_t* frame, std::size_t frame_bytes) noexcept {
    PacketRef ignored;  // the only object through which `frame` could be written
    return judge_arrival(const_cast<std::uint8_t*>(frame), frame_bytes, ignored);
}

Path::Arrival Path::judge_arrival(std::uint8_t* frame, std::size_t frame_bytes, PacketRef& out) noexcept {
    return is_v4_ ? judge_known<V4>(frame, frame_bytes, out) : judge_known<V6>(frame, frame_bytes, out);
}

template <class Family>
inline Path::Arrival Path::judge_known(std::uint8_t* frame, std::size_t frame_bytes, PacketRef& out) noexcept {
    std::uint8_t* const bth = frame + Family::kLower;
    const Shape& shape = shape_for(Direction::Receive, get_word32(bth), frame_bytes);
    // Both lengths and the BTH's word stand in the headers, so that one comparison proves the shape.
    if (!has_headers<Family>(frame, shape.header.data()) || frame_bytes < shape.least_bytes) [[unlikely]] {
        return judge_new(frame, frame_bytes, out);
    }
    describe(shape, bth, out);
    if (!shape.rest.are_small()) [[unlikely]] {
        return judge_rest(shape.rest, out);
    }
    return judged(shape.rest.crc_of_small(bth + kWord), out);
}

inline void Path::describe(const Shape& shape, std::uint8_t* bth, PacketRef& out) noexcept {
    constexpr std::size_t kFrom = offsetof(Shape, udp_payload_bytes);
    constexpr std::size_t kTo = offsetof(PacketRef, len);
    static_assert(kTo + sizeof(std::uint64_t) == sizeof(PacketRef));
    static_assert(offsetof(PacketRef, ip_id) - kTo == offsetof(Shape, ip_id) - kFrom);
    static_assert(offsetof(PacketRef, ecn) - kTo == offsetof(Shape, ecn) - kFrom);
    static_assert(offsetof(PacketRef, icrc_ok) - kTo == offsetof(Shape, icrc_ok) - kFrom);
    out.data = bth;
    out.path = this;
    std::memcpy(reinterpret_cast<std::uint8_t*>(&out) + kTo, reinterpret_cast<const std::uint8_t*>(&shape) + kFrom,
                sizeof(std::uint64_t));
}

// Judges the first frame of its length and BTH word, or one whose traffic class, TTL or source MAC changed on the way.
// The ICRC masks these fields, so that its state stays valid.
Path::Arrival Path::judge_new(std::uint8_t* frame, std::size_t frame_bytes, PacketRef& out) noexcept {
    const std::size_t lower = lower_bytes();
    std::uint8_t* const bth = frame + lower;
    const auto payload_bytes = static_cast<std::uint16_t>(get16(bth - 4) - kUdpBytes);
    if (frame_bytes < lower + kLeastPayload || !matches_received(frame, frame_bytes) || payload_bytes < kLeastPayload) {
        return Arrival::NoMatch;
    }
    const std::uint32_t bth_word = get_word32(bth);
    Shape& shape = shape_for(Direction::Receive, bth_word, frame_bytes);
    if (!shape.is_of(bth_word, payload_bytes)) {
        make_shape(shape, Direction::Receive, bth_word, payload_bytes);
    }
    std::memcpy(shape.header.data(), frame, lower);
    shape.ecn = ecn_of(frame);
    describe(shape, bth, out);
    const Arrival arrival = judge_rest(shape.rest, out);
    net::MacAddress from;
    std::memcpy(from.octets.data(), frame + 6, 6);
    const bool elsewhere = arrival == Arrival::Whole && goes_to().value_or(from) != from;
    return elsewhere ? Arrival::WholeFromElsewhere : arrival;
}

}  // namespace cairn::port
