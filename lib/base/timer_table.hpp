// The timers of one object. An enum names them; the table holds when each is due.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "lib/base/time.hpp"

namespace cairn {

// `Timer` is an enum whose last value is Count. A timer that is not armed is due at Instant::never().
template <class Timer>
class TimerTable {
public:
    constexpr TimerTable() noexcept { due_.fill(Instant::never()); }

    constexpr void arm(Timer timer, Instant due) noexcept { at(timer) = due; }
    constexpr void stop(Timer timer) noexcept { at(timer) = Instant::never(); }
    constexpr void stop_all() noexcept { due_.fill(Instant::never()); }

    [[nodiscard]] constexpr bool is_armed(Timer timer) const noexcept { return due(timer) != Instant::never(); }
    [[nodiscard]] constexpr bool is_due(Timer timer, Instant now) const noexcept { return due(timer) <= now; }
    // Returns Instant::never() if the timer is not armed.
    [[nodiscard]] constexpr Instant due(Timer timer) const noexcept { return due_[static_cast<std::size_t>(timer)]; }
    // Returns the earliest due time of all timers.
    [[nodiscard]] constexpr Instant next() const noexcept { return *std::min_element(due_.begin(), due_.end()); }

private:
    [[nodiscard]] constexpr Instant& at(Timer timer) noexcept { return due_[static_cast<std::size_t>(timer)]; }

    std::array<Instant, static_cast<std::size_t>(Timer::Count)> due_;
};

}  // namespace cairn
