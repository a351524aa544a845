// AdaptiveSpin: how long an idle worker spins before it gives the CPU away. It reads no clock: times go in, advice
// comes out.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/base/time.hpp"

namespace cairn::worker {

// Spinning pays if work comes soon. On a shared CPU it delays the very process that the worker waits for. So spinning
// stops after two spins in a row that found nothing. It also stops when the worker was preempted, since another thread
// then needs the CPU. After a while one spin is tried again.
// A spin lasts twice as long as work took to come lately. Where both sides sleep, such a spin outlasts the peer's
// waking up. Where the peer waits for this very CPU, it costs next to nothing. After a spin that found nothing the peer
// probably sleeps, so the next spin is long enough for its waking up, too.
class AdaptiveSpin {
public:
    enum class Advice : std::uint8_t { Spin, Yield, Sleep };

    static constexpr Duration kLeast = microseconds(20);  // the length of a spin
    static constexpr Duration kMost = microseconds(200);
    static constexpr int kFailures = 2;                      // spins in a row without work that stop spinning
    static constexpr Duration kProbe = milliseconds(5);      // the time until spinning is tried again
    static constexpr Duration kSuspect = microseconds(100);  // a turn of this length may have been interrupted
    static constexpr Duration kYield = milliseconds(1);      // idle time after which the worker may sleep

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

    // Returns the advice after a turn without work. `preemptions()` returns how often the worker was preempted so far.
    // It is called only after a long turn.
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

    // Returns true if the worker may sleep without looking again, since it does not spin now. Called after work.
    [[nodiscard]] bool may_sleep_at_once() noexcept {
        given_away_ = !spinning_;
        return given_away_;
    }

    // Returns how long a spin goes on without work.
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
    Duration usual_wait_ = microseconds(25);  // from one piece of work to the next, smoothed
    Instant last_turn_{};
    Instant stopped_at_{};
    std::uint64_t preemptions_ = 0;
    int failures_ = 0;        // spins in a row that found nothing
    bool stopped_ = false;    // no spinning, apart from probes
    bool spinning_ = true;    // since the last work
    bool given_away_ = true;  // the last advice was not to spin, so that the length of the turn has no meaning
    bool suspect_ = false;    // a turn took long
};

}  // namespace cairn::worker
