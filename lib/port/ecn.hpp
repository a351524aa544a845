// Explicit congestion notification: the low two bits of an IP header's traffic class (RFC 3168, 5).
#pragma once

#include <cstdint>

namespace cairn::port {

constexpr std::uint8_t kEcnBits = 3;
constexpr std::uint8_t kNotEct = 0;
constexpr std::uint8_t kEct0 = 2;  // switches may mark it
constexpr std::uint8_t kCongestionExperienced = 3;

}  // namespace cairn::port
