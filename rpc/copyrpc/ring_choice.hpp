// How to choose the length of an endpoint's rings.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "rpc/copyrpc/endpoint_config.hpp"
#include "rpc/copyrpc/message.hpp"
#include "rpc/copyrpc/ring_shape.hpp"

namespace cairn::copyrpc {

// Returns the longest ring that an endpoint with this configuration writes to. Of a peer's longer ring it uses that
// much.
[[nodiscard]] inline std::uint32_t longest_mirror_of(const EndpointConfig& config) noexcept {
    const std::uint32_t any_bytes = std::max(config.ring_bytes, config.peer_ring_bytes_max);
    return std::min(std::bit_floor(any_bytes), RingShape::kMostBytes);
}

// The load that the sessions of an endpoint must carry.
struct RingNeeds {
    std::uint32_t sessions = 1;
    std::uint32_t calls = 1;  // unanswered calls of an end over one session
    std::uint32_t request_bytes = 0;
    std::uint32_t answer_bytes = 0;
};

// Longer messages travel by themselves.
constexpr std::uint32_t kLongestInRing = 16U << 10U;

// Returns the size of a ring for EndpointConfig::ring_bytes. It takes the longest request and answer, and promises room
// for the answers to all calls. Rings are longer than that while the rings of all sessions stay in a cache.
[[nodiscard]] constexpr std::uint32_t ring_bytes_for(const RingNeeds& needs) noexcept {
    constexpr std::uint64_t kCached = 4U << 20U;
    constexpr std::uint64_t kUsual = 64U << 10U;
    const std::uint64_t request =
        Message::blocks_of(needs.request_bytes <= kLongestInRing ? needs.request_bytes : 0, 1);
    const std::uint64_t charge = Message::charge_for(needs.answer_bytes <= kLongestInRing ? needs.answer_bytes : 0);
    const std::uint64_t blocks = std::max({8 * request, (16 * charge + 2) / 3, 4 * charge * needs.calls});
    const std::uint64_t usual = std::min(kUsual, std::bit_floor(kCached / std::max(needs.sessions, 1U)));
    const std::uint64_t least = std::bit_ceil(std::max(blocks * kBlockBytes, usual));
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(least, RingShape::kLeastBytes, RingShape::kMostBytes));
}

}  // namespace cairn::copyrpc
