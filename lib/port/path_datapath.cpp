#include <cstring>

#include "lib/port/path.hpp"
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

std::uint32_t fold(std::uint32_t sum) noexcept {
    sum = (sum & 0xffffU) + (sum >> 16U);
    return (sum & 0xffffU) + (sum >> 16U);
}

bool equal(const std::uint8_t* a, const std::uint8_t* b, std::size_t from, std::size_t to) noexcept {
    return std::memcmp(a + from, b + from, to - from) == 0;
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
    const std::uint8_t* expected = receive_header_.data();
    const std::uint8_t* ip = frame + kIp;
    const std::size_t udp_at = lower_bytes() - kUdpBytes;
    if (!equal(frame, expected, 0, 6) || !equal(frame, expected, 12, kIp) ||
        !equal(frame, expected, udp_at, udp_at + 4) || get16(frame + udp_at + 6) != 0) {
        return false;
    }
    const std::uint32_t udp_bytes = get16(frame + udp_at + 4);
    if (!is_v4_) {
        return (ip[0] >> 4U) == 6 && ip[6] == expected[kIp + 6] && equal(frame, expected, kIp + 8, udp_at) &&
               get16(ip + 4) == udp_bytes && kIp + 40 + udp_bytes <= frame_bytes && udp_bytes >= kUdpBytes;
    }
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < 20; i += 2) {
        sum += get16(ip + i);
    }
    return ip[0] == 0x45 && equal(frame, expected, kIp + 4, kIp + 8) && ip[9] == expected[kIp + 9] &&
           equal(frame, expected, kIp + 12, kIp + 20) && get16(ip + 2) == udp_bytes + 20 &&
           kIp + 20 + udp_bytes <= frame_bytes && udp_bytes >= kUdpBytes && fold(sum) == 0xffffU;
}

std::uint32_t Path::icrc_prefix(Direction direction, std::uint32_t bth_word, std::uint16_t udp_payload_bytes) noexcept {
    const auto side = static_cast<std::size_t>(direction);
    IcrcState& state = icrc_states_[side][(udp_payload_bytes / 4U) % kStates];
    if (state.udp_payload_bytes != udp_payload_bytes || state.bth_word != bth_word) {
        std::array<std::uint8_t, 64> header = direction == Direction::Transmit ? transmit_header_ : receive_header_;
        const std::uint32_t udp_bytes = udp_payload_bytes + std::uint32_t{kUdpBytes};
        std::uint8_t* ip = header.data() + kIp;
        put16(is_v4_ ? ip + 2 : ip + 4, is_v4_ ? udp_bytes + 20 : udp_bytes);
        put16(header.data() + lower_bytes() - 4, udp_bytes);
        std::array<std::uint8_t, kBeforeMask> bth{};
        std::memcpy(bth.data(), &bth_word, sizeof(bth_word));
        const std::uint32_t lower = wire::icrc_lower_state(std::span(header).subspan(kIp, lower_bytes() - kIp));
        state = {bth_word, udp_payload_bytes, wire::crc32(lower, bth.data(), bth.size())};
    }
    return state.crc;
}

std::uint32_t Path::icrc(Direction direction, const std::uint8_t* bth, std::uint16_t udp_payload_bytes) noexcept {
    std::uint32_t bth_word = 0;
    std::memcpy(&bth_word, bth, sizeof(bth_word));
    const std::uint32_t prefix = icrc_prefix(direction, bth_word, udp_payload_bytes);
    // As wire::icrc_finish, from the state behind the first word on.
    return wire::crc32(prefix ^ (bth[kBeforeMask] ^ 0xffU), bth + kBeforeMask,
                       std::size_t{udp_payload_bytes} - kIcrc - kBeforeMask);
}

}  // namespace cairn::port
