// The effect of signals on a thread of the program that sleeps in a system call.
#pragma once

#include "lib/base/time.hpp"

namespace cairn::ibverbs {

// A read() goes on after a handler that was set with SA_RESTART, and fails with EINTR after others. A ppoll() fails
// after all of them and does not say which handler ran. The handlers that are set tell what would have happened to a
// read(). Handlers of faults do not count, nor those of signals that the thread blocks.
struct Interruptions {
    static constexpr Duration kLately = milliseconds(100);

    bool end = false;      // a handler is there that ends a read()
    bool restart = false;  // a handler is there after which it goes on

    [[nodiscard]] bool are_mixed() const noexcept { return end && restart; }

    // Returns the interruptions of the calling thread. Costs some sixty system calls.
    [[nodiscard]] static Interruptions look() noexcept;
    // As look(), for handlers as they were at most kLately before `now`.
    [[nodiscard]] static Interruptions lately(Instant now) noexcept;
};

}  // namespace cairn::ibverbs
