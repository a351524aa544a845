// Big-endian integers as they stand on the wire: byte arrays with explicit conversion, alignment 1.
// A host integer can neither be assigned to one nor compared with one by accident.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace cairn {

// A big-endian value of kBytes octets. Host is the narrowest unsigned type that holds it.
template <std::unsigned_integral Host, std::size_t kBytes>
class BigEndian {
public:
    static_assert(kBytes <= sizeof(Host));

    constexpr BigEndian() noexcept = default;
    // Bits above kBytes * 8 are cut off: a 24-bit field keeps the low 24 bits.
    constexpr explicit BigEndian(Host value) noexcept { set(value); }

    constexpr void set(Host value) noexcept {
        if constexpr (kBytes == sizeof(Host) && std::endian::native == std::endian::little) {
            octets_ = std::bit_cast<std::array<std::uint8_t, kBytes>>(swapped(value));  // one store
            return;
        }
        for (std::size_t i = 0; i < kBytes; ++i) {
            octets_[i] = static_cast<std::uint8_t>(value >> (8 * (kBytes - 1 - i)));
        }
    }

    [[nodiscard]] constexpr Host get() const noexcept {
        if constexpr (kBytes == sizeof(Host) && std::endian::native == std::endian::little) {
            return swapped(std::bit_cast<Host>(octets_));
        }
        std::uint64_t value = 0;
        for (const std::uint8_t octet : octets_) {
            value = (value << 8U) | octet;
        }
        return static_cast<Host>(value);
    }

    friend constexpr bool operator==(const BigEndian&, const BigEndian&) noexcept = default;

private:
    static constexpr Host swapped(Host value) noexcept {
        if constexpr (sizeof(Host) == 2) {
            return __builtin_bswap16(value);
        } else if constexpr (sizeof(Host) == 4) {
            return __builtin_bswap32(value);
        } else {
            return __builtin_bswap64(value);
        }
    }

    std::array<std::uint8_t, kBytes> octets_{};
};

using Be16 = BigEndian<std::uint16_t, 2>;
using Be24 = BigEndian<std::uint32_t, 3>;
using Be32 = BigEndian<std::uint32_t, 4>;
using Be48 = BigEndian<std::uint64_t, 6>;
using Be64 = BigEndian<std::uint64_t, 8>;

static_assert(sizeof(Be16) == 2 && sizeof(Be24) == 3 && sizeof(Be32) == 4 && sizeof(Be48) == 6 && sizeof(Be64) == 8);
static_assert(alignof(Be64) == 1);
static_assert(Be24{0x12345678U}.get() == 0x345678U);

}  // namespace cairn
