// The place of one connection's messages: `slots` places of one size.
#pragma once

#include <algorithm>
#include <bit>

#include "apps/common/pattern.hpp"
#include "apps/perf/options.hpp"

namespace cairn::perf {

using app::fill_pattern;
using app::has_pattern;

// The room after all messages, for the IP headers of datagrams, which overwrite each other.
constexpr std::uint32_t kHeaderArea = 64;

// The slots of messages. Message i lies in slot i modulo `slots`, which is a power of two.
struct MessageLayout {
    std::uint32_t bytes = 0;
    std::uint32_t slots = 1;

    [[nodiscard]] std::uint64_t stride() const noexcept { return (std::uint64_t{bytes} + 63) / 64 * 64; }
    [[nodiscard]] std::uint64_t area_bytes() const noexcept { return std::max<std::uint64_t>(stride(), 64) * slots; }
    [[nodiscard]] std::uint64_t offset(std::uint64_t message) const noexcept {
        return (message & (slots - 1)) * stride();
    }
};

// Returns a slot for each outstanding message if the contents are used; otherwise as many slots as stay in a cache.
[[nodiscard]] inline std::uint32_t slots_for(const Options& options, std::uint32_t message_bytes,
                                             std::uint32_t share) noexcept {
    constexpr std::uint32_t kCachedBytes = 16384;
    const std::uint32_t cached = std::max(1U, kCachedBytes / std::max(message_bytes, 64U));
    const bool looked_at = options.check || options.test == Test::Latency;
    return looked_at ? std::bit_ceil(share) : std::bit_floor(std::min(share, cached));
}

}  // namespace cairn::perf
