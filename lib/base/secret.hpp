// What secrets follow from: another key for each owner.
#pragma once

#include <random>

#include "lib/base/sip_hash.hpp"

namespace cairn {

// From the system's source of chance; once per owner, when it is made.
[[nodiscard]] inline SipKey draw_secret() {
    std::random_device entropy;
    const auto word = [&entropy] { return std::uint64_t{entropy()} << 32U | entropy(); };
    return {word(), word()};
}

}  // namespace cairn
