// AdaptiveSpin: how long an idle worker spins before it gives the CPU away. Pure: time goes in, advice comes out.
#pragma once

#include "lib/base/time.hpp"

namespace cairn::pmd {

// Spinning pays while it finds work soon: the budget is kept then. A spin that found nothing, or during which
// the worker was preempted (someone else needs the CPU), ends it; after a while it is tried again.
class AdaptiveSpin {
public:
    enum class Advice : std::uint8_t { Spin, Yield, Sleep };

    static constexpr Duration kSpin = microseconds(50);
    static constexpr Duration kProbe = milliseconds(5);        // until spinning is tried again
    static constexpr Duration kPreempted = microseconds(100);  // a turn this long was not ours alone
    static constexpr Duration kYield = milliseconds(1);        // idle time after which sleep is allowed

    void on_work(Instant now) noexcept {
        if (spinning_since_idle_) {
            budget_ = kSpin;  // it paid
        }
        last_work_ = now;
        last_turn_ = now;
        spinning_since_idle_ = budget_.ns != 0;
    }

    [[nodiscard]] Advice on_idle(Instant now) noexcept {
        const Duration turn = now - last_turn_;
        const Duration idle = now - last_work_;
        last_turn_ = now;
        if (budget_.ns == 0 && now - stopped_ >= kProbe) {
            budget_ = kSpin;
        }
        if (budget_.ns != 0 && (turn >= kPreempted || idle >= budget_)) {
            budget_ = Duration{};
            stopped_ = now;
            spinning_since_idle_ = false;
        }
        if (budget_.ns != 0) {
            return Advice::Spin;
        }
        return idle < kYield ? Advice::Yield : Advice::Sleep;
    }

private:
    Duration budget_ = kSpin;
    Instant last_work_{};
    Instant last_turn_{};
    Instant stopped_{};
    bool spinning_since_idle_ = true;
};

}  // namespace cairn::pmd
