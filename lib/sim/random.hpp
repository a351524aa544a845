// The simulator's own random numbers. The same seed gives the same history with every library and compiler, which the
// distributions of <random> do not promise.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "lib/base/assert.hpp"
#include "lib/base/time.hpp"

namespace cairn::sim {

constexpr std::uint32_t kMillion = 1'000'000;

// Turns one seed into many by SplitMix64 (Steele, Lea, Flood 2014).
[[nodiscard]] constexpr std::uint64_t split_mix(std::uint64_t& state) noexcept {
    state += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31U);
}

// xoshiro256** (Blackman, Vigna 2018), seeded by SplitMix64.
class Random {
public:
    explicit Random(std::uint64_t seed) noexcept {
        for (std::uint64_t& word : state_) {
            word = split_mix(seed);
        }
    }

    [[nodiscard]] std::uint64_t next() noexcept {
        const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
        const std::uint64_t shifted = state_[1] << 17U;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= shifted;
        state_[3] = std::rotl(state_[3], 45);
        return result;
    }
    // Returns a number in [0, bound) without bias: a value in the incomplete last round of the 64-bit range is drawn
    // again.
    [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept {
        CAIRN_ASSERT(bound > 0);
        const std::uint64_t incomplete = (0 - bound) % bound;
        std::uint64_t value = next();
        while (value < incomplete) {
            value = next();
        }
        return value % bound;
    }
    // Returns a number in [least, most].
    [[nodiscard]] std::uint64_t between(std::uint64_t least, std::uint64_t most) noexcept {
        CAIRN_ASSERT(least <= most);
        return least + below(most - least + 1);
    }
    [[nodiscard]] Duration between(Duration least, Duration most) noexcept {
        CAIRN_ASSERT(least <= most);
        return least + Duration{static_cast<std::int64_t>(below(static_cast<std::uint64_t>((most - least).ns) + 1))};
    }
    [[nodiscard]] bool chance(std::uint32_t per_million) noexcept {
        return per_million != 0 && below(kMillion) < per_million;
    }

private:
    std::array<std::uint64_t, 4> state_{};
};

}  // namespace cairn::sim
