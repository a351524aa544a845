// Cache lines, and memory that will be looked at soon.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn {

constexpr std::size_t kCacheLineBytes = 64;

// Asks for the cache lines of `bytes` bytes and does not wait for them.
inline void fetch_lines(const void* from, std::size_t bytes) noexcept {
    for (std::size_t at = 0; at < bytes; at += kCacheLineBytes) {
        __builtin_prefetch(static_cast<const std::uint8_t*>(from) + at);
    }
}

}  // namespace cairn
