// The range of bytes in a file.
#pragma once

#include <cerrno>
#include <cstdint>

namespace cairn::fs {

// Returns 2^32 chunks, but at most what off_t reaches.
[[nodiscard]] constexpr std::uint64_t longest_file(std::uint32_t chunk_bytes) noexcept {
    constexpr std::uint64_t kMostOffset = 0x7fff'ffff'ffff'ffffU;
    const std::uint64_t chunks = std::uint64_t{chunk_bytes} << 32U;
    return chunks < kMostOffset ? chunks : kMostOffset;
}

// Judges a read or write of `bytes`. Returns 0 or an errno. A write gets as many bytes as fit: see bytes_that_fit().
[[nodiscard]] constexpr int judge_range(std::int64_t offset, std::uint64_t bytes, std::uint32_t chunk_bytes,
                                        bool writes) noexcept {
    if (offset < 0) {
        return EINVAL;
    }
    return writes && bytes != 0 && static_cast<std::uint64_t>(offset) >= longest_file(chunk_bytes) ? EFBIG : 0;
}

// Returns how many bytes of a judged range lie below longest_file().
[[nodiscard]] constexpr std::uint64_t bytes_that_fit(std::int64_t offset, std::uint64_t bytes,
                                                     std::uint32_t chunk_bytes) noexcept {
    const std::uint64_t longest = longest_file(chunk_bytes);
    const auto from = static_cast<std::uint64_t>(offset);
    return from >= longest ? 0 : bytes < longest - from ? bytes : longest - from;
}

}  // namespace cairn::fs
