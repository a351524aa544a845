#include "lib/ibverbs/interruptions.hpp"

#include <algorithm>
#include <array>
#include <csignal>

namespace cairn::ibverbs {

namespace {

// Signals that report a fault. Their handlers mostly do not return.
constexpr std::array kFaults{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

struct Seen {
    Instant at{-seconds(1).ns};
    Interruptions what{};
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Seen seen{};

}  // namespace

Interruptions Interruptions::look() noexcept {
    Interruptions found;
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    for (int each = 1; each <= SIGRTMAX; ++each) {
        struct sigaction set {};
        if (sigismember(&blocked, each) == 1 || std::find(kFaults.begin(), kFaults.end(), each) != kFaults.end() ||
            sigaction(each, nullptr, &set) != 0 || set.sa_handler == SIG_DFL || set.sa_handler == SIG_IGN) {
            continue;
        }
        ((set.sa_flags & SA_RESTART) != 0 ? found.restart : found.end) = true;
    }
    return found;
}

Interruptions Interruptions::lately(Instant now) noexcept {
    if (now - seen.at >= kLately) {
        seen = {now, look()};
    }
    return seen.what;
}

}  // namespace cairn::ibverbs
