// Time for protocol code, taken from a counter that may jump.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/base/time.hpp"

namespace cairn {

// Turns readings of a counter into a time that never goes back and never leaps far. The counter leaps when a virtual
// machine is suspended or moved, and when CPUs have counters that differ. Such leaps are counted here and have no other
// effect. Belongs to one thread.
class SteadyTime {
public:
    // A longer step counts as this long. No polling thread sleeps as long. So either the counter leapt, or the process
    // was kept from running, and then its deadlines wait for it.
    static constexpr Duration kStepMost = seconds(1);

    // Returns the time of this reading. It is later than the last one by as much as the counter advanced, within [0,
    // kStepMost]. The first reading is taken unchanged, unless it lies before the epoch.
    [[nodiscard]] Instant on_reading(Instant reading) noexcept {
        if (!started_) [[unlikely]] {
            started_ = true;
            now_ = last_reading_ = std::max(reading, Instant{});
        }
        // Unsigned, since the distance between two readings may exceed the signed range.
        const std::uint64_t step =
            static_cast<std::uint64_t>(reading.ns) - static_cast<std::uint64_t>(last_reading_.ns);
        if (reading < last_reading_) [[unlikely]] {
            ++went_back_;
        } else if (step > static_cast<std::uint64_t>(kStepMost.ns)) [[unlikely]] {
            ++leapt_;
            now_ = now_ + kStepMost;
        } else {
            now_ = now_ + Duration{static_cast<std::int64_t>(step)};
        }
        last_reading_ = reading;
        return now_;
    }

    [[nodiscard]] std::uint64_t went_back() const noexcept { return went_back_; }
    [[nodiscard]] std::uint64_t leapt() const noexcept { return leapt_; }

private:
    Instant now_{};
    Instant last_reading_{};
    std::uint64_t went_back_ = 0;
    std::uint64_t leapt_ = 0;
    bool started_ = false;
};

}  // namespace cairn
