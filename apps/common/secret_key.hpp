// What an application's secrets follow from: another key for each owner, from the system's source of chance.
#pragma once

#include <random>

#include "lib/base/sip_hash.hpp"

namespace cairn::app {

inline SipKey secret_key() {
    std::random_device entropy;
    const auto word = [&entropy] { return (std::uint64_t{entropy()} << 32U) | entropy(); };
    return {word(), word()};
}

}  // namespace cairn::app
