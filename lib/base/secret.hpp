// Keys of secrets. Each owner draws a key of its own.
#pragma once

#include <random>

#include "lib/base/sip_hash.hpp"

namespace cairn {

// Reads the system's source of entropy. Each owner calls it once, when it is made.
[[nodiscard]] inline SipKey draw_secret() {
    std::random_device entropy;
    const auto word = [&entropy] { return std::uint64_t{entropy()} << 32U | entropy(); };
    return {word(), word()};
}

}  // namespace cairn
