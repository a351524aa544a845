// The key of a memory window: the binder chooses its low 8 bits anew with each binding (IBTA vol. 1, 10.6.6.2).
#pragma once

#include <cstdint>

#include "lib/base/types.hpp"

namespace cairn::roce {

constexpr std::uint32_t kBindersBits = 0xff;

// Returns true if both keys name the same window. They may be of different bindings.
[[nodiscard]] constexpr bool name_one_window(Rkey one, Rkey other) noexcept {
    return ((one.value ^ other.value) & ~kBindersBits) == 0;
}
[[nodiscard]] constexpr Rkey key_of_next_binding(Rkey key) noexcept {
    return Rkey{(key.value & ~kBindersBits) | ((key.value + 1) & kBindersBits)};
}

}  // namespace cairn::roce
