// The names (connection ids, ids of questions) that a manager draws if several managers serve one host.
#pragma once

#include <cstdint>

#include "lib/base/assert.hpp"

namespace cairn::cm {

// All names that a manager draws have `owner` in their low `bits`, and each manager of a host has another owner. So a
// message that names one finds its manager.
struct NameShare {
    std::uint8_t bits = 0;  // [0, 8]
    std::uint32_t owner = 0;

    [[nodiscard]] constexpr std::uint32_t name(std::uint64_t drawn) const noexcept {
        return static_cast<std::uint32_t>(drawn << bits) | owner;
    }
    [[nodiscard]] constexpr std::uint32_t owner_of(std::uint32_t name) const noexcept {
        return name & ((1U << bits) - 1);
    }
};

}  // namespace cairn::cm
