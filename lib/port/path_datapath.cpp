#include <bit>
#include <cstring>

#include "lib/port/path.hpp"
#include "lib/wire/crc32_short.hpp"
#include "lib/wire/icrc.hpp"

namespace cairn::port {

namespace {

constexpr std::size_t kIp = Path::kEthernetBytes;
constexpr std::uint16_t kUdpBytes = 8;
constexpr std::uint16_t kIcrc = 4;
constexpr std::size_t kBeforeMask = 4;  // BTH bytes in front of the one that reads as ones

void put16(std::uint8_t* at, std::uint32_t value) noexcept {
    at[0] = static_cast<std::uint8_t>(value >> 8U);
    at[1] = static_cast<std::uint8_t>(value);
}

std::uint32_t get16(const std::uint8_t* at) noexcept {
    return (std::uint32_t{at[0]} << 8U) | at[1];
}

std::uint64_t get_word(const std::uint8_t* at) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    return word;
}

// Eight bytes of the lower headers and which of their bits must equal the template's.
struct MaskedWord {
    std::size_t at;
    std::uint64_t mask;
};

constexpr MaskedWord at(std::size_t offset, std::array<std::uint8_t, 8> mask) noexcept {
    return {offset, std::bit_cast<std::uint64_t>(mask)};
}

constexpr std::uint8_t kAll = 0xff;
constexpr std::uint8_t kVersion = 0xf0;

// Judged elsewhere or free: source MAC, TOS, total length, TTL, IPv4 checksum, UDP length.
constexpr std::array<MaskedWord, 5> kWordsV4{{
    at(0, {kAll, kAll, kAll, kAll, kAll, kAll, 0, 0}),         // destination MAC
    at(12, {kAll, kAll, kAll, 0, 0, 0, kAll, kAll}),           // EtherType, version and IHL, ID
    at(20, {kAll, kAll, 0, kAll, 0, 0, kAll, kAll}),           // flags and offset, protocol, source
    at(28, {kAll, kAll, kAll, kAll, kAll, kAll, kAll, kAll}),  // source, destination, source port
    at(34, {kAll, kAll, kAll, kAll, 0, 0, kAll, kAll}),        // ports, UDP checksum
}};

// Likewise: source MAC, traffic class, flow label, payload length, hop limit, UDP length.
constexpr std::array<MaskedWord, 8> kWordsV6{{
    at(0, {kAll, kAll, kAll, kAll, kAll, kAll, 0, 0}),         // destination MAC
    at(12, {kAll, kAll, kVersion, 0, 0, 0, 0, 0}),             // EtherType, version
    at(20, {kAll, 0, kAll, kAll, kAll, kAll, kAll, kAll}),     // next header, source
    at(28, {kAll, kAll, kAll, kAll, kAll, kAll, kAll, kAll}),  // source
    at(36, {kAll, kAll, kAll, kAll, kAll, kAll, kAll, kAll}),  // source, destination
    at(44, {kAll, kAll, kAll, kAll, kAll, kAll, kAll, kAll}),  // destination
    at(52, {kAll, kAll, kAll, kAll, kAll, kAll, 0, 0}),        // destination, ports
    at(54, {kAll, kAll, kAll, kAll, 0, 0, kAll, kAll}),        // ports, UDP checksum
}};

// Bits that differ, in any position: 0 when all the masked words agree. No early exit: a branch per word
// costs more than the words.
template <std::size_t kCount>
std::uint64_t difference(const std::uint8_t* frame, const std::uint8_t* expected,
                         const std::array<MaskedWord, kCount>& words) noexcept {
    std::uint64_t bits = 0;
    for (const MaskedWord& word : words) {
        bits |= (get_word(frame + word.at) ^ get_word(expected + word.at)) & word.mask;
    }
    return bits;
}

std::uint32_t fold(std::uint32_t sum) noexcept {
    sum = (sum & 0xffffU) + (sum >> 16U);
    return (sum & 0xffffU) + (sum >> 16U);
}

// True when the one's complement sum of the 20 bytes is all ones, as a right checksum makes it. The sum of
// 32-bit words in any byte order gives the same verdict (RFC 1071, 2): it is a multiple of 0xffff, and never 0.
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
    const std::uint32_t udp_bytes = udp_payload_bytes + std::uint32_t{kUdpBytes};
    if (is_v4_) {
        std::uint8_t* frame = udp_payload - kLowerBytesV4;
        std::memcpy(frame, transmit_header_.data(), kLowerBytesV4);
        const std::uint32_t total = udp_bytes + 20;
        put16(frame + kIp + 2, total);
        put16(frame + kIp + 10, ~fold(checksum_base_ + total));
    } else {
        std::uint8_t* frame = udp_payload - kLowerBytesV6;
        std::memcpy(frame, transmit_header_.data(), kLowerBytesV6);
        put16(frame + kIp + 4, udp_bytes);
    }
    put16(udp_payload - 4, udp_bytes);
}

bool Path::matches_received(const std::uint8_t* frame, std::size_t frame_bytes) const noexcept {
    const std::uint8_t* ip = frame + kIp;
    if (is_v4_) {
        const std::uint32_t udp_bytes = get16(frame + kLowerBytesV4 - 4);
        return difference(frame, receive_header_.data(), kWordsV4) == 0 && get16(ip + 2) == udp_bytes + 20 &&
               kIp + 20 + udp_bytes <= frame_bytes && udp_bytes >= kUdpBytes && checksum_is_right(ip);
    }
    const std::uint32_t udp_bytes = get16(frame + kLowerBytesV6 - 4);
    return difference(frame, receive_header_.data(), kWordsV6) == 0 && get16(ip + 4) == udp_bytes &&
           kIp + 40 + udp_bytes <= frame_bytes && udp_bytes >= kUdpBytes;
}

std::uint32_t Path::icrc_prefix(Direction direction, std::uint32_t bth_word, std::uint16_t udp_payload_bytes) noexcept {
    const auto side = static_cast<std::size_t>(direction);
    // The opcode (first byte of the word) parts the First and Middle of one length.
    IcrcState& state = icrc_states_[side][(udp_payload_bytes / 4U + bth_word) % kStates];
    if (state.udp_payload_bytes != udp_payload_bytes || state.bth_word != bth_word) [[unlikely]] {
        state = {bth_word, udp_payload_bytes, icrc_state(direction, bth_word, udp_payload_bytes)};
    }
    return state.crc;
}

std::uint32_t Path::icrc_state(Direction direction, std::uint32_t bth_word,
                               std::uint16_t udp_payload_bytes) const noexcept {
    std::array<std::uint8_t, 64> header = direction == Direction::Transmit ? transmit_header_ : receive_header_;
    const std::uint32_t udp_bytes = udp_payload_bytes + std::uint32_t{kUdpBytes};
    std::uint8_t* ip = header.data() + kIp;
    put16(is_v4_ ? ip + 2 : ip + 4, is_v4_ ? udp_bytes + 20 : udp_bytes);
    put16(header.data() + lower_bytes() - 4, udp_bytes);
    std::array<std::uint8_t, kBeforeMask> bth{};
    std::memcpy(bth.data(), &bth_word, sizeof(bth_word));
    const std::uint32_t lower = wire::icrc_lower_state(std::span(header).subspan(kIp, lower_bytes() - kIp));
    return wire::crc32(lower, bth.data(), bth.size());
}

std::uint32_t Path::icrc_of_headers(Direction direction, const std::uint8_t* bth, std::size_t header_bytes,
                                    std::uint16_t udp_payload_bytes) noexcept {
    std::uint32_t bth_word = 0;
    std::memcpy(&bth_word, bth, sizeof(bth_word));
    // As wire::icrc_finish, from the state behind the first word on.
    const std::uint32_t state =
        icrc_prefix(direction, bth_word, udp_payload_bytes) ^ (bth[kBeforeMask] ^ std::uint32_t{0xff});
    const std::size_t count = header_bytes - kBeforeMask;
    return wire::is_short(count) ? wire::crc32_short(state, bth + kBeforeMask, count)
                                 : wire::crc32(state, bth + kBeforeMask, count);
}

std::uint32_t Path::icrc(Direction direction, const std::uint8_t* bth, std::uint16_t udp_payload_bytes) noexcept {
    return icrc_of_headers(direction, bth, std::size_t{udp_payload_bytes} - kIcrc, udp_payload_bytes);
}

}  // namespace cairn::port
