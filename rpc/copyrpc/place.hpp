// Memory of a caller that its server may read, or write.
#pragma once

#include <cstdint>

#include "lib/base/endian.hpp"
#include "lib/base/types.hpp"

namespace cairn::copyrpc {

struct RawPlace {
    Be64 address;
    Be32 rkey;
    Be32 bytes;
};
static_assert(sizeof(RawPlace) == 16 && alignof(RawPlace) == 1);

struct Place {
    std::uint64_t address = 0;
    Rkey rkey{};
    std::uint32_t bytes = 0;

    [[nodiscard]] static Place of(const RawPlace& raw) noexcept {
        return {raw.address.get(), Rkey{raw.rkey.get()}, raw.bytes.get()};
    }
    [[nodiscard]] RawPlace raw() const noexcept { return {Be64{address}, Be32{rkey.value}, Be32{bytes}}; }
    // True if it names memory of at most `bytes_max`.
    [[nodiscard]] bool is_sound(std::uint32_t bytes_max) const noexcept {
        return bytes != 0 && bytes <= bytes_max && address + bytes > address;
    }
    friend bool operator==(const Place&, const Place&) noexcept = default;
};

}  // namespace cairn::copyrpc
