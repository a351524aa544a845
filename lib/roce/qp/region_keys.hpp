// Maps a key to its region: index, secret, generation.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "lib/base/types.hpp"

namespace cairn::roce {

// Divides the bits of the keys of a table. The low eight are the generation, or the binder's choice for a window. The
// bits between these and the index are secret. In tables of more than 2^16 regions, the index of the first 2^15 has 15
// bits after a zero. So their keys keep eight secret bits. The index of the others has 20 bits after a one, which
// leaves three.
class RegionKeys {
public:
    static constexpr std::uint32_t kGenerationBits = 8;
    static constexpr std::uint32_t kFirst = 1U << 15U;  // regions of a large table whose keys have more secret bits

    // Makes the division for a table of `regions` regions, in [1, 2^20].
    constexpr explicit RegionKeys(std::uint32_t regions) noexcept
        : last_short_(regions > kMostOfOneKind ? kLong - 1 : ~0U),
          shift_(regions > kMostOfOneKind
                     ? kShortShift
                     : 32U - std::max(1U, static_cast<std::uint32_t>(std::bit_width(regions - 1)))) {}

    // Returns the region's index, which may lie beyond the table's end.
    [[nodiscard]] constexpr std::uint32_t index_of(Rkey key) const noexcept {
        return key.value <= last_short_ ? key.value >> shift_ : (key.value & ~kLong) >> kLongShift;
    }
    [[nodiscard]] constexpr Rkey make(std::uint32_t index, std::uint64_t secret,
                                      std::uint64_t generation) const noexcept {
        const bool is_long = last_short_ != ~0U && index >= kFirst;
        const std::uint32_t shift = is_long ? kLongShift : shift_;
        const std::uint32_t secret_mask = (std::uint32_t{1} << (shift - kGenerationBits)) - 1;
        return Rkey{(is_long ? kLong : 0U) | index << shift |
                    (static_cast<std::uint32_t>(secret) & secret_mask) << kGenerationBits |
                    (static_cast<std::uint32_t>(generation) & 0xffU)};
    }

private:
    static constexpr std::uint32_t kMostOfOneKind = 1U << 16U;
    static constexpr std::uint32_t kLong = 1U << 31U;
    static constexpr std::uint32_t kShortShift = 16;  // of large tables
    static constexpr std::uint32_t kLongShift = 11;

    std::uint32_t last_short_;  // the last key whose index lies above `shift_`
    std::uint32_t shift_;
};

}  // namespace cairn::roce
