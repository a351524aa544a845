// What signals do to a thread of the program that sleeps in a system call.
#pragma once

#include "lib/base/time.hpp"

namespace cairn::ibverbs {

// A read() goes on behind a handler that was set with SA_RESTART, and fails with EINTR behind others. ppoll() fails
// behind all of them and does not say which it was: what it would have been to a read() follows from the handlers that
// there are. Those of faults do not count, nor those of signals that the thread blocks.
struct Interruptions {
    static constexpr Duration kLately = milliseconds(100);

    bool end = false;      // a handler is there that ends a read()
    bool restart = false;  // one is there behind which it goes on

    [[nodiscard]] bool are_mixed() const noexcept { return end && restart; }

    // Those of the calling thread. Costs some sixty system calls.
    [[nodiscard]] static Interruptions look() noexcept;
    // Likewise, as they were at most kLately before `now`.
    [[nodiscard]] static Interruptions lately(Instant now) noexcept;
};

}  // namespace cairn::ibverbs
