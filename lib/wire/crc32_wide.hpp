// The CRC32 of long data, 32 bytes at a time. crc32() uses it where the machine has nothing faster.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/wire/crc32_fold.hpp"

#if defined(CAIRN_HAS_CLMUL) && defined(__VPCLMULQDQ__) && defined(__AVX2__)
#define CAIRN_HAS_WIDE_CLMUL 1

namespace cairn::wire::detail {

constexpr std::size_t kWideLeastBytes = 128;

// Returns the CRC of the first bytes, a multiple of 16, and moves `bytes` and `count` behind them. `count` is at least
// kWideLeastBytes.
[[nodiscard]] std::uint32_t crc32_wide(std::uint32_t crc, const std::uint8_t*& bytes, std::size_t& count) noexcept;

}  // namespace cairn::wire::detail

#endif
