// When a responder acknowledges messages that did not ask for it: by count, and between peers that agreed on it also by
// time.
#pragma once

#include <cstdint>

#include "lib/base/assert.hpp"
#include "lib/base/time.hpp"
#include "lib/roce/rc/limits.hpp"

namespace cairn::roce::rc {

class DelayedAcks {
public:
    // Forgets everything.
    void start(bool by_time) noexcept {
        by_time_ = by_time;
        note_acknowledged();
    }
    // Counts a message that ended. Returns true if enough messages lack an acknowledgement that one is owed.
    [[nodiscard]] bool count_message() noexcept {
        messages_ += messages_ < kAckEveryMessages ? 1U : 0U;
        return messages_ == kAckEveryMessages;
    }
    // Starts the time of the messages counted, if it does not run yet: no answer leaves now that acknowledges them.
    void wait(Instant now) noexcept {
        if (messages_ != 0 && by_time_ && due_ == Instant::never()) {
            due_ = now + kAckDelay;
        }
    }
    // Notes that an answer left that acknowledges everything.
    void note_acknowledged() noexcept {
        messages_ = 0;
        due_ = Instant::never();
    }
    [[nodiscard]] Instant due() const noexcept { return due_; }
    // Returns true once when the time is over.
    [[nodiscard]] bool take_due(Instant now) noexcept {
        if (now < due_) {
            return false;
        }
        due_ = Instant::never();
        return true;
    }
    void check_invariants() const noexcept {
        CAIRN_ASSERT(messages_ <= kAckEveryMessages);
        CAIRN_ASSERT(due_ == Instant::never() || (by_time_ && messages_ != 0));
    }

private:
    std::uint32_t messages_ = 0;  // ended since the last answer
    bool by_time_ = false;
    Instant due_ = Instant::never();
};

}  // namespace cairn::roce::rc
