// The contents of test messages, by which every byte of them can be verified.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

namespace cairn::app {

// Returns a word of message `seed`, which is the same wherever it is computed. The low 32 bits of the seed count, as
// immediate data can carry them.
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

// Returns a sum that changes with each byte of the message and with its length.
[[nodiscard]] inline std::uint32_t digest(std::span<const std::uint8_t> message) noexcept {
    std::uint64_t sum = message.size();
    for (std::size_t at = 0; at < message.size(); at += sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, message.data() + at, std::min(sizeof(word), message.size() - at));
        sum = (sum ^ word) * 0x9e3779b97f4a7c15U;
        sum ^= sum >> 32U;
    }
    return static_cast<std::uint32_t>(sum);
}

}  // namespace cairn::app
