// FLUSH extended transport header: 4 bytes, with how far written data shall be safe (IBTA vol. 1, annex A19).
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/endian.hpp"

namespace cairn::wire {

struct RawFeth {
    Be32 bits;  // reserved 26, selectivity 2, placement 4
};
static_assert(sizeof(RawFeth) == 4 && alignof(RawFeth) == 1);

struct Feth {
    using Raw = RawFeth;
    static constexpr std::size_t kBytes = sizeof(Raw);
    static constexpr std::uint8_t kGlobal = 1;      // placement (a set): seen by all
    static constexpr std::uint8_t kPersistent = 2;  // placement: safe from power failures
    static constexpr std::uint8_t kRange = 0;       // selectivity: the range of the RETH
    static constexpr std::uint8_t kWhole = 1;       // selectivity: all memory of its key

    std::uint8_t placement = 0;
    std::uint8_t selectivity = 0;

    [[nodiscard]] static Feth parse(const Raw& raw) noexcept {
        const std::uint32_t bits = raw.bits.get();
        return {static_cast<std::uint8_t>(bits & 0xfU), static_cast<std::uint8_t>(bits >> 4U & 3U)};
    }
    void emit(Raw& raw) const noexcept { raw = {Be32{(selectivity & 3U) << 4U | (placement & 0xfU)}}; }

    friend bool operator==(const Feth&, const Feth&) noexcept = default;
};

}  // namespace cairn::wire
