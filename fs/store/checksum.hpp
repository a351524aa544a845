// crc32c (RFC 3720, B.4) of bytes on a medium.
#pragma once

#include <isa-l/crc.h>

#include <cstdint>
#include <span>

#include "lib/base/assert.hpp"

namespace cairn::fs {

// Returns the checksum of the bytes, at most 2 GiB. `seed` is the checksum of the bytes before them, or 0.
[[nodiscard]] inline std::uint32_t crc32c(std::uint32_t seed, std::span<const std::uint8_t> bytes) noexcept {
    // The library's interface has no const; it does not write.
    auto* const data = const_cast<std::uint8_t*>(bytes.data());  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    return ~crc32_iscsi(data, static_cast<int>(bytes.size()), ~seed);
}

}  // namespace cairn::fs
