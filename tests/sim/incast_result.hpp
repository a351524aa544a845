// What the incast worlds have in common: their switch, and what they find.
#pragma once

#include <cstdint>

#include "lib/base/time.hpp"
#include "tests/support/sim/switch.hpp"

namespace cairn::sim {

// DCQCN's paper marks all frames above 200 KB and 1 % just below (at 40 Gbit/s). That cuts all of many flows at once; a
// slope without such a cliff does not, and 400 KB here are 128 us.
constexpr SwitchShape kIncastSwitch{.ecn_low_bytes = 5'000, .ecn_high_bytes = 400'000, .ecn_most_per_million = 300'000};

struct IncastResult {
    double goodput_bits_per_s = 0;  // payload for the server, each byte once
    double goodput_of_link = 0;
    double fairness = 0;  // Jain's index of the clients' shares: 1 when equal
    Duration rtt_p50{};   // of each packet, from its departure to what acknowledges it
    Duration rtt_p99{};
    std::uint64_t retransmits = 0;
    std::uint64_t dropped = 0;  // by the switch
    std::uint64_t marked = 0;   // by the switch
    std::uint64_t queue_most_bytes = 0;
    std::uint64_t calls = 0;  // or messages
    std::uint64_t calls_failed = 0;
    std::uint64_t frames = 0;
};

}  // namespace cairn::sim
