// Where messages of one connection lie: `slots` places of one size, and what is written there to be checked.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "apps/perf/options.hpp"

namespace cairn::perf {

// The bytes of message `seed`, anywhere the same; its low 32 bits count, which immediate data can say.
inline std::uint64_t pattern_word(std::uint64_t seed, std::uint64_t index) noexcept {
    const std::uint64_t mixed =
        (std::uint64_t{static_cast<std::uint32_t>(seed)} + 1) * 0x9e3779b97f4a7c15U + index * 0xbf58476d1ce4e5b9U;
    return mixed ^ (mixed >> 29U);
}

inline void fill_pattern(std::span<std::uint8_t> message, std::uint64_t seed) noexcept {
    for (std::size_t at = 0; at < message.size(); at += sizeof(std::uint64_t)) {
        const std::uint64_t word = pattern_word(seed, at);
        std::memcpy(message.data() + at, &word, std::min(sizeof(word), message.size() - at));
    }
}

[[nodiscard]] inline bool has_pattern(std::span<const std::uint8_t> message, std::uint64_t seed) noexcept {
    bool same = true;
    for (std::size_t at = 0; at < message.size(); at += sizeof(std::uint64_t)) {
        const std::uint64_t word = pattern_word(seed, at);
        same = std::memcmp(message.data() + at, &word, std::min(sizeof(word), message.size() - at)) == 0 && same;
    }
    return same;
}

// Behind all messages: the IP headers of datagrams go there, one over the other.
constexpr std::uint32_t kHeaderArea = 64;

// Message i lies in slot i modulo `slots`, a power of two.
struct MessageLayout {
    std::uint32_t bytes = 0;
    std::uint32_t slots = 1;

    [[nodiscard]] std::uint64_t stride() const noexcept { return (std::uint64_t{bytes} + 63) / 64 * 64; }
    [[nodiscard]] std::uint64_t area_bytes() const noexcept { return std::max<std::uint64_t>(stride(), 64) * slots; }
    [[nodiscard]] std::uint64_t offset(std::uint64_t message) const noexcept {
        return (message & (slots - 1)) * stride();
    }
};

// A slot for each outstanding message where their contents are looked at; otherwise as many as stay in a cache.
[[nodiscard]] inline std::uint32_t slots_for(const Options& options, std::uint32_t message_bytes,
                                             std::uint32_t share) noexcept {
    constexpr std::uint32_t kCachedBytes = 16384;
    const std::uint32_t cached = std::max(1U, kCachedBytes / std::max(message_bytes, 64U));
    const bool looked_at = options.check || options.test == Test::Latency;
    return looked_at ? std::bit_ceil(share) : std::bit_floor(std::min(share, cached));
}

}  // namespace cairn::perf
