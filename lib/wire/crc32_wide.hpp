// The CRC32 of long data, 32 bytes at a time. crc32() uses it if the machine can and has nothing faster. The program
// finds that out when it starts, not when it is built.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/wire/crc32_fold.hpp"

#ifdef CAIRN_HAS_CLMUL

namespace cairn::wire::detail {

constexpr std::size_t kWideLeastBytes = 128;

[[nodiscard]] bool has_wide_clmul() noexcept;

// Returns the CRC of the first bytes, a multiple of 16, and moves `bytes` and `count` past them. `count` is at least
// kWideLeastBytes. The machine must have the instructions.
[[nodiscard]] std::uint32_t crc32_wide(std::uint32_t crc, const std::uint8_t*& bytes, std::size_t& count) noexcept;

}  // namespace cairn::wire::detail

#endif
