// What the helper thread does next: a pure state machine, given the time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/base/time.hpp"

namespace cairn::ibverbs {

// The helper makes progress where the program does not: while it computes, sleeps, or spins on memory.
//
// Guard: the helper sleeps on the socket and takes a turn for each arrival.
// Park: callers take turns themselves. The helper stays off the socket, where each packet would wake it and take the
// CPU from the very caller that polls. It naps, and looks whether they still do.
//
// A caller that polls now and then, and spins on memory in between, would wait for the end of a nap each time. Packets
// that waited while nobody polled show such a caller, if it happens again and again: once may be a caller that was
// preempted. Then the helper guards, whoever polls, and parks for a nap from time to time to see whether it still has
// to.
class HelperPolicy {
public:
    enum class Mode : std::uint8_t { Guard, Park };

    static constexpr Duration kNap = microseconds(150);
    static constexpr Duration kPolls = microseconds(20);  // who polls does so more often than this
    static constexpr Duration kStay = milliseconds(20);   // between two naps of a helper that guards beside callers
    static constexpr int kSure = 3;                       // so many naps show a caller that spins on memory

    // Decides at `now`. `last_caller_turn`: when a caller took its last turn. `any_armed`: a completion queue is armed,
    // so that somebody is about to sleep until it fires, whatever callers did before.
    // mutants: ibverbs-helper-policy-decide
    Mode decide(Instant now, Instant last_caller_turn, bool any_armed) noexcept {
        const bool guards = any_armed || now < stay_until_ || now - last_caller_turn >= kNap;
        mode_ = guards ? Mode::Guard : Mode::Park;
        return mode_;
    }
    // A nap ended at `now`. `found`: packets had come meanwhile, and waited.
    // mutants: ibverbs-helper-policy-on-nap-end
    void on_nap_end(Instant now, Instant last_caller_turn, bool found) noexcept {
        if (now - last_caller_turn < kPolls) {
            waited_ = 0;
        } else if (found) {
            waited_ = std::min(waited_ + 1, kSure);
        }
        stay_until_ = waited_ == kSure ? now + kStay : now;
    }
    [[nodiscard]] Mode mode() const noexcept { return mode_; }

private:
    Mode mode_ = Mode::Guard;
    Instant stay_until_{};
    int waited_ = 0;  // naps in which packets waited, since callers were last seen to poll
};

}  // namespace cairn::ibverbs
