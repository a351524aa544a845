// The time that a peer takes to answer, and the silence after which a packet counts as lost (RFC 6298).
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/base/time.hpp"

namespace cairn::roce {

constexpr Duration kRtoMin = milliseconds(4);  // a shorter silence may be a peer whose CPU was taken away

class RoundTrip {
public:
    // Takes a round trip. `rtt` was measured on a packet that was sent once, and holds no pause of our own.
    void sample(Duration rtt) noexcept {
        const std::int64_t measured = std::max<std::int64_t>(rtt.ns, 1);
        if (smoothed_ns_ == 0) {
            smoothed_ns_ = measured;
            variation_ns_ = measured / 2;
            return;
        }
        const std::int64_t off = measured > smoothed_ns_ ? measured - smoothed_ns_ : smoothed_ns_ - measured;
        variation_ns_ += (off - variation_ns_) / 4;
        smoothed_ns_ += (measured - smoothed_ns_) / 8;
        smoothed_ns_ = std::max<std::int64_t>(smoothed_ns_, 1);
    }
    [[nodiscard]] bool known() const noexcept { return smoothed_ns_ != 0; }
    [[nodiscard]] Duration smoothed() const noexcept { return {smoothed_ns_}; }

    static constexpr std::uint32_t kMostDoublings = 10;
    // Returns the silence after which a packet counts as lost, doubled for each such silence in a row. There is a
    // sample.
    [[nodiscard]] Duration timeout(std::uint32_t silences) const noexcept {
        return std::max(kRtoMin, Duration{smoothed_ns_ + 4 * variation_ns_}) *
               (std::int64_t{1} << std::min(silences, kMostDoublings));
    }

private:
    std::int64_t smoothed_ns_ = 0;  // 0: no sample yet
    std::int64_t variation_ns_ = 0;
};

}  // namespace cairn::roce
