// Cache lines, and memory that will be looked at soon.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn {

constexpr std::size_t kCacheLineBytes = 64;

enum class FetchTo : std::uint8_t { Read, Write };

// Asks for the cache lines of `bytes` bytes and does not wait for them. gcc sees no effect in a function that only does
// that, and leaves out calls of it. The empty assembler statement counts as an effect.
template <FetchTo kUse = FetchTo::Read>
inline void fetch_lines(const void* from, std::size_t bytes) noexcept {
    for (std::size_t at = 0; at < bytes; at += kCacheLineBytes) {
        const auto* const line = static_cast<const std::uint8_t*>(from) + at;
        __builtin_prefetch(line, kUse == FetchTo::Write ? 1 : 0);
        asm volatile("" : : "r"(line));
    }
}

}  // namespace cairn
