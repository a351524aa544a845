// Decides whether a posted request leaves at once, or with the caller's next poll: a pure state machine, given the
// time.
#pragma once

#include <cstdint>

#include "lib/base/time.hpp"

namespace cairn::ibverbs {

// Each send is a system call, whatever it carries. So requests of a caller whose polls follow its posts soon wait for
// the next poll. Requests that are posted in a row then leave together, with the acknowledgements that are owed.
//
// Several posts in a row, each soon followed by a poll, show such a caller. One poll that comes late takes the trust
// away. The wait is bounded: a helper sends the requests after a while if no poll comes.
class PostPolicy {
public:
    static constexpr int kSure = 4;                          // this many in a row
    static constexpr Duration kSoon = microseconds(2);       // after a post that left at once
    static constexpr Duration kLate = microseconds(20);      // after the first of those that wait
    static constexpr std::uint64_t kMostBytes = 64U << 10U;  // that wait
    static constexpr int kMostPosts = 64;

    // Notes that requests of `bytes` were posted at `now`, which is not looked at while others wait. `bounded`: the
    // helper sends what waits if no poll comes. Returns true if all that waits leaves now; then on_sent() follows.
    [[nodiscard]] bool on_post(std::uint64_t bytes, Instant now, bool bounded) noexcept {
        if (waiting_ == 0) {
            if (now - last_post_ < kSoon) {
                learn();
            }
            last_post_ = now;
        }
        ++waiting_;
        bytes_ += bytes;
        return !bounded || trust_ < 0 || bytes_ >= kMostBytes || waiting_ >= kMostPosts;
    }
    // Notes that waiting requests left at `now`, right after a post.
    void on_sent(Instant now) noexcept {
        forget_waiting();
        last_post_ = now;
    }
    // Notes that a poll sends what waits at `now`.
    void on_poll(Instant now) noexcept {
        if (waiting_ != 0) {
            const bool soon = now - last_post_ < kLate;
            forget_waiting();
            soon ? learn() : distrust();
        } else if (now - last_post_ < kSoon) {
            learn();
            last_post_ = last_post_ - kSoon;  // one post, one lesson
        }
    }
    // Notes that something other than a post or a poll sends what waits at `now`. If it waited for long, no poll came.
    void on_sent_by_other(Instant now) noexcept {
        if (waiting_ != 0) {
            forget_waiting();
            if (now - last_post_ >= kLate) {
                distrust();
            }
        }
    }
    [[nodiscard]] bool any_waiting() const noexcept { return waiting_ != 0; }
    // Returns when the last request was posted, or the first of those that wait.
    [[nodiscard]] Instant last_post() const noexcept { return last_post_; }

private:
    void learn() noexcept { trust_ += trust_ < 0 ? 1 : 0; }
    void distrust() noexcept { trust_ = -kSure; }
    void forget_waiting() noexcept {
        waiting_ = 0;
        bytes_ = 0;
    }

    int trust_ = -kSure;  // 0: requests wait
    int waiting_ = 0;     // calls that posted
    std::uint64_t bytes_ = 0;
    Instant last_post_{-seconds(1).ns};
};

}  // namespace cairn::ibverbs
