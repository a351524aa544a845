// AdaptiveSpin: how long an idle worker spins before it gives the CPU away. Pure: time goes in, advice comes out.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/base/time.hpp"

namespace cairn::worker {

// Spinning pays while it finds work soon. Where the CPU is shared it delays the very process it waits for: so it ends
// after two spins in a row that found nothing, or when the worker was preempted (someone else needs the CPU). After a
// while one spin is tried again. A spin is as long as makes sense, twice what work took to come lately: so it outlasts
// the peer's waking up where both sleep, and costs next to nothing where the peer waits for this very CPU. After one
// that found nothing the peer is likely to sleep: the next one waits for that, too.
class AdaptiveSpin {
public:
    enum class Advice : std::uint8_t { Spin, Yield, Sleep };

    static constexpr Duration kLeast = microseconds(20);  // a spin's length
    static constexpr Duration kMost = microseconds(200);
    static constexpr int kFailures = 2;                      // in a row that end spinning
    static constexpr Duration kProbe = milliseconds(5);      // until spinning is tried again
    static constexpr Duration kSuspect = microseconds(100);  // a turn this long may have been interrupted
    static constexpr Duration kYield = milliseconds(1);      // idle time after which sleep is allowed

    void on_work(Instant now) noexcept {
        look_at_turn(now);
        if (spinning_) {
            failures_ = 0;
            stopped_ = false;
        }
        const Duration came_after = std::min(now - last_work_, kMost);
        usual_wait_ = Duration{usual_wait_.ns + (came_after.ns - usual_wait_.ns) / 8};
        last_work_ = now;
        spinning_ = !stopped_ || now - stopped_at_ >= kProbe;
    }

    // `preemptions()` counts how often the worker was preempted so far; it is asked only after a turn that took long.
    template <class Count>
    [[nodiscard]] Advice on_idle(Instant now, Count&& preemptions) noexcept {
        look_at_turn(now);
        const Duration idle = now - last_work_;
        if (suspect_) {
            suspect_ = false;
            if (const std::uint64_t count = preemptions(); count != preemptions_) {
                preemptions_ = count;
                stop(now);
            }
        }
        if (spinning_ && idle >= spin()) {
            spinning_ = false;
            if (stopped_ || ++failures_ == kFailures) {
                stop(now);
            }
        }
        given_away_ = !spinning_;
        return spinning_ ? Advice::Spin : idle < kYield ? Advice::Yield : Advice::Sleep;
    }

    // After work: there is nothing to spin for, the worker may sleep without looking again.
    [[nodiscard]] bool may_sleep_at_once() noexcept {
        given_away_ = !spinning_;
        return given_away_;
    }

    // How long a spin may find nothing.
    [[nodiscard]] Duration spin() const noexcept {
        return failures_ != 0 ? kMost : std::clamp(usual_wait_ + usual_wait_, kLeast, kMost);
    }

private:
    void look_at_turn(Instant now) noexcept {
        suspect_ = suspect_ || (!given_away_ && now - last_turn_ >= kSuspect);
        given_away_ = false;
        last_turn_ = now;
    }
    void stop(Instant now) noexcept {
        stopped_ = true;
        spinning_ = false;
        stopped_at_ = now;
        failures_ = 0;
    }

    Instant last_work_{};
    Duration usual_wait_ = microseconds(25);  // from one work to the next, smoothed
    Instant last_turn_{};
    Instant stopped_at_{};
    std::uint64_t preemptions_ = 0;
    int failures_ = 0;        // spins in a row that found nothing
    bool stopped_ = false;    // no spinning but for probes
    bool spinning_ = true;    // since the last work
    bool given_away_ = true;  // the CPU, by the last advice: how long the turn took says nothing
    bool suspect_ = false;    // a turn took long
};

}  // namespace cairn::worker
