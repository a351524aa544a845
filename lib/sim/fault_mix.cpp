#include "lib/sim/fault_mix.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "lib/sim/random.hpp"

namespace cairn::sim {

namespace {

constexpr std::uint32_t kHalf = kMillion / 2;

// Draws small shares as often as large ones: one of 0.1, 1, 5, 20 per cent.
std::uint32_t share(Random& random, std::uint32_t most_per_million) {
    constexpr std::uint32_t kShares[] = {1'000, 10'000, 50'000, 200'000};
    const std::uint32_t chosen = kShares[random.below(4)];
    return chosen < most_per_million ? chosen : most_per_million;
}

Duration one_of(Random& random, Duration low, Duration middle, Duration high) {
    const std::uint64_t chosen = random.below(3);
    return chosen == 0 ? low : chosen == 1 ? middle : high;
}

LinkShape make_shape(Random& random) {
    LinkShape shape;
    shape.delay = random.between(microseconds(1), microseconds(50));
    if (random.chance(kHalf)) {
        constexpr std::uint64_t kRates[] = {100'000'000, 1'000'000'000, 10'000'000'000};
        shape.bits_per_second = kRates[random.below(3)];
        shape.queue_limit_bytes = static_cast<std::uint32_t>(random.between(2'500, 32'768));
        shape.ecn_threshold_bytes = shape.queue_limit_bytes / 4;
    }
    return shape;
}

}  // namespace

FaultMix FaultMix::from_seed(std::uint64_t seed) {
    Random random(seed ^ 0xfa017U);
    FaultMix mix;
    mix.shape = make_shape(random);
    if (random.chance(kHalf)) {
        mix.link.loss_per_million = share(random, 200'000);
    }
    if (random.chance(kHalf)) {
        mix.link.burst_enter_per_million = share(random, 20'000);
        mix.link.burst_leave_per_million = static_cast<std::uint32_t>(random.between(50'000, 500'000));
    }
    if (random.chance(kHalf)) {
        mix.link.duplicate_per_million = share(random, 200'000);
    }
    if (random.chance(kHalf)) {
        mix.link.late_copy_per_million = share(random, 50'000);
        mix.link.late_copy_most = one_of(random, milliseconds(1), milliseconds(10), milliseconds(100));
    }
    if (random.chance(kHalf)) {
        mix.link.corrupt_per_million = share(random, 50'000);
    }
    if (random.chance(kHalf)) {
        mix.link.jitter = one_of(random, microseconds(10), microseconds(100), milliseconds(2));
    }
    if (random.chance(kHalf)) {
        mix.port.tx_full_per_million = share(random, 200'000);
    }
    if (random.chance(kHalf)) {
        mix.port.pool_empty_per_million = share(random, 200'000);
    }
    if (random.chance(kHalf)) {
        mix.node.stall_every = one_of(random, milliseconds(2), milliseconds(10), milliseconds(50));
        mix.node.stall_max = one_of(random, microseconds(500), milliseconds(5), milliseconds(30));
    }
    if (random.chance(kHalf)) {
        mix.node.restart_every = one_of(random, milliseconds(10), milliseconds(30), milliseconds(100));
    }
    if (random.chance(kHalf)) {
        mix.node.partition_every = one_of(random, milliseconds(5), milliseconds(20), milliseconds(80));
        mix.node.partition_max = one_of(random, milliseconds(1), milliseconds(10), milliseconds(150));
    }
    if (random.chance(kHalf)) {
        mix.forge_per_million = share(random, 200'000);
    }
    if (random.chance(kHalf)) {
        mix.node.clock_jump_every = one_of(random, milliseconds(1), milliseconds(5), milliseconds(30));
    }
    if (random.chance(kHalf)) {
        mix.babble_every = one_of(random, microseconds(30), microseconds(200), milliseconds(1));
    }
    if (random.chance(kHalf / 2)) {
        mix.node.turn_max = one_of(random, microseconds(1'100), milliseconds(2), milliseconds(3));
    }
    mix.node.scarce_memory = random.chance(kHalf / 2);
    mix.node.runs_ahead = random.chance(kHalf / 2);
    return mix;
}

FaultMix FaultMix::within(const FaultLimits& limits) const {
    FaultMix mix = *this;
    const auto limit = [](Duration& span, Duration most) { span = std::min(span, most); };
    limit(mix.link.late_copy_most, limits.late_copy_most);
    limit(mix.node.stall_every, limits.stall_every);
    limit(mix.node.stall_max, limits.stall_max);
    limit(mix.node.restart_every, limits.restart_every);
    limit(mix.node.partition_every, limits.partition_every);
    limit(mix.node.partition_max, limits.partition_max);
    return mix;
}

FaultMix FaultMix::healed() const {
    FaultMix mix;
    mix.shape.delay = shape.delay;
    mix.forge_per_million = forge_per_million;
    return mix;
}

FaultMix FaultMix::prompt() const {
    FaultMix mix = *this;
    mix.shape = {};
    mix.shape.delay = shape.delay;
    mix.link.loss_per_million = mix.link.burst_enter_per_million = mix.link.corrupt_per_million = 0;
    mix.link.jitter = {};
    mix.port = {};
    mix.node = {};
    mix.node.restart_every = node.restart_every;
    mix.node.scarce_memory = node.scarce_memory;
    mix.node.runs_ahead = node.runs_ahead;
    return mix;
}

bool FaultMix::is_prompt() const noexcept {
    const std::uint64_t lost = std::uint64_t{link.loss_per_million} + link.burst_enter_per_million +
                               link.corrupt_per_million + port.tx_full_per_million + port.pool_empty_per_million;
    const Duration late = link.jitter + node.stall_every + node.partition_every + node.clock_jump_every + node.turn_max;
    return lost == 0 && late == Duration{} && shape.bits_per_second == 0;
}

std::string FaultMix::text() const {
    std::string line = fmt::format("delay {} ns", shape.delay.ns);
    const auto add = [&line](const char* name, auto value) {
        if (value != 0) {
            line += fmt::format(", {} {}", name, value);
        }
    };
    add("bit/s", shape.bits_per_second);
    add("queue bytes", shape.queue_limit_bytes);
    add("ECN bytes", shape.ecn_threshold_bytes);
    add("loss ppm", link.loss_per_million);
    add("burst enter ppm", link.burst_enter_per_million);
    add("burst leave ppm", link.burst_leave_per_million);
    add("duplicate ppm", link.duplicate_per_million);
    add("late copy ppm", link.late_copy_per_million);
    add("late copy up to ns", link.late_copy_most.ns);
    add("corrupt ppm", link.corrupt_per_million);
    add("jitter ns", link.jitter.ns);
    add("tx full ppm", port.tx_full_per_million);
    add("pool empty ppm", port.pool_empty_per_million);
    add("stall every ns", node.stall_every.ns);
    add("stall up to ns", node.stall_max.ns);
    add("restart every ns", node.restart_every.ns);
    add("partition every ns", node.partition_every.ns);
    add("partition up to ns", node.partition_max.ns);
    add("forge ppm", forge_per_million);
    add("clock jump every ns", node.clock_jump_every.ns);
    add("babble every ns", babble_every.ns);
    add("turns up to ns", node.turn_max.ns);
    add("scarce memory", static_cast<int>(node.scarce_memory));
    add("runs ahead", static_cast<int>(node.runs_ahead));
    return line;
}

}  // namespace cairn::sim
