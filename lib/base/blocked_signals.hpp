// Blocks signals in threads that a library starts in a program. The program's signals are for its own threads.
#pragma once

#include <pthread.h>

#include <csignal>
#include <initializer_list>

namespace cairn {

// While a BlockedSignals lives, the calling thread takes no signals but those of `open`. Threads that it starts
// meanwhile inherit this for good.
class BlockedSignals {
public:
    explicit BlockedSignals(std::initializer_list<int> open = {}) noexcept {
        sigset_t blocked;
        sigfillset(&blocked);
        for (const int each : open) {
            sigdelset(&blocked, each);
        }
        pthread_sigmask(SIG_SETMASK, &blocked, &before_);
    }
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;
    ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_{};
};

}  // namespace cairn
