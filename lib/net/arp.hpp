// ARP for IPv4 over Ethernet: 28 bytes (RFC 826).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "lib/base/endian.hpp"
#include "lib/net/address.hpp"
#include "lib/net/parsed.hpp"

namespace cairn::net {

struct RawArp {
    Be16 hardware_type;
    Be16 protocol_type;
    std::uint8_t hardware_bytes;
    std::uint8_t protocol_bytes;
    Be16 operation;
    std::array<std::uint8_t, 6> sender_mac;
    Be32 sender_ip;
    std::array<std::uint8_t, 6> target_mac;
    Be32 target_ip;
};
static_assert(sizeof(RawArp) == 28 && alignof(RawArp) == 1);

enum class ArpOperation : std::uint8_t { Request = 1, Reply = 2 };

struct ArpMessage {
    using Raw = RawArp;
    static constexpr std::size_t kBytes = sizeof(Raw);

    ArpOperation operation = ArpOperation::Request;
    MacAddress sender_mac{};
    IpAddress sender_ip{};
    MacAddress target_mac{};
    IpAddress target_ip{};

    // Accepts only requests and replies for IPv4 over Ethernet whose sender MAC is no group's.
    [[nodiscard]] static Parsed<ArpMessage> parse(std::span<const std::uint8_t> message) noexcept;
    void emit(Raw& raw) const noexcept;

    friend bool operator==(const ArpMessage&, const ArpMessage&) noexcept = default;
};

}  // namespace cairn::net
