// EagerSpin: when a loop that never gives its CPU away pauses between two turns.
#pragma once

#include <cstdint>

namespace cairn::worker {

// Pauses leave issue slots to a sibling thread of the core, and delay the look that finds the next packet. They made
// round trips over memif 4 to 5 % longer. So the first idle turns after work have none. These turns outlast a round
// trip.
class EagerSpin {
public:
    static constexpr std::uint32_t kEagerTurns = 64;

    void on_work() noexcept { idle_turns_ = 0; }
    // Counts a turn that found nothing. Returns true if the loop shall pause now.
    [[nodiscard]] bool on_idle() noexcept {
        idle_turns_ += idle_turns_ < kEagerTurns ? 1U : 0U;
        return idle_turns_ == kEagerTurns;
    }

private:
    std::uint32_t idle_turns_ = 0;
};

}  // namespace cairn::worker
