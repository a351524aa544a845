// Decides which thread sleeps on the socket, the helper or a thread of the program that waits for an event. A pure
// state machine, given the time.
#pragma once

#include "lib/base/time.hpp"

namespace cairn::ibverbs {

// A thread that waits for an event takes the lease and sleeps on the socket itself, so that a packet wakes one thread,
// not two. It renews the lease while it sleeps. The thread may be cancelled there. Then the lease runs out, and the
// helper guards again.
class GuardLease {
public:
    static constexpr Duration kLease = milliseconds(10);
    static constexpr Duration kRenew = milliseconds(5);   // the longest time between two renewals
    static constexpr Duration kTired = milliseconds(20);  // without a packet, the helper may guard: it sleeps longer
    static constexpr Duration kLately = milliseconds(1);

    // Takes the lease. Returns false if another thread has it.
    [[nodiscard]] bool take(Instant now) noexcept {
        if (is_held(now)) {
            return false;
        }
        renew(now);
        return true;
    }
    void renew(Instant now) noexcept { until_ = now + kLease; }
    void give_back(Instant now) noexcept { until_ = given_back_ = now; }
    [[nodiscard]] bool is_held(Instant now) const noexcept { return now < until_; }
    [[nodiscard]] Instant until() const noexcept { return until_; }
    // Returns whether the lease was given back a moment ago, and is likely to be taken again.
    [[nodiscard]] bool was_lately(Instant now) const noexcept { return now - given_back_ < kLately; }

private:
    Instant until_{};
    Instant given_back_{-seconds(1).ns};
};

}  // namespace cairn::ibverbs
