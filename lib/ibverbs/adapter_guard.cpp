// The adapter while no caller polls: the helper thread, and threads that wait for an event.
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>

#include "lib/base/monotonic_clock.hpp"
#include "lib/ibverbs/adapter.hpp"
#include "lib/ibverbs/interruptions.hpp"

namespace cairn::ibverbs {

namespace {

using Owed = roce::Engine::Owed;

constexpr int kMostGuardTurns = 64;               // in a row, with the lock held
constexpr Duration kHold = microseconds(20);      // how long an acknowledgement waits for a request to leave with
constexpr Duration kPosts = microseconds(100);    // a caller that posts does so more often than this
constexpr Duration kBusy = microseconds(3);       // time after which the helper tries the lock again
constexpr Duration kGiveWay = microseconds(100);  // a thread that waits for the lock wakes meanwhile
constexpr Duration kActive = milliseconds(1);     // a caller that is at work calls more often than this
constexpr Duration kLong = seconds(3600);

timespec time_until(Instant due) noexcept {
    const std::int64_t ns = std::max<std::int64_t>((due - read_monotonic()).ns, 0);
    return {ns / 1'000'000'000, ns % 1'000'000'000};
}

}  // namespace

// Takes turns until there is nothing to do, or another thread is to have the lock: peers may send without end.
Adapter::Guarded Adapter::guard_turns(Instant now) noexcept {
    Guarded did;
    bool more = true;
    posts_.on_sent_by_other(now);
    for (int turns = 0; more && !did.gives_way && turns < kMostGuardTurns; ++turns) {
        now = turns == 0 ? now : this->now();
        more = worker_->take_in(now);
        did.found = did.found || more;
        did.gives_way = more && lock_.is_awaited();
        const Owed owed = engine().owed();
        did.holds = did.found && !more && now - posts_.last_post() < kPosts && owed == Owed::Acknowledgements;
        if (!did.holds && !(more && !posts_.any_waiting() && held_.may_answer_later(owed))) {
            give_out(now);
        }
        events_.show_all();
    }
    return did;
}

// Returns whether packets ended the sleep.
bool Adapter::sleep_until(const Rest& rest) noexcept {
    std::array<pollfd, 3> waiting{
        {{wake_fd_, POLLIN, 0}, {watched_fd_.load(std::memory_order_relaxed), POLLIN, 0}, {socket_fd_, POLLIN, 0}}};
    const timespec left = time_until(rest.due);
    ppoll(waiting.data(), rest.on_socket && socket_fd_ >= 0 ? 3 : 2, rest.due == Instant::never() ? nullptr : &left,
          nullptr);
    if ((waiting[0].revents & POLLIN) != 0) {
        std::uint64_t count = 0;
        static_cast<void>(read(wake_fd_, &count, sizeof(count)));
    }
    if ((waiting[1].revents & (POLLIN | POLLERR)) != 0) [[unlikely]] {
        const std::lock_guard hold(lock_);
        if (watched_ != nullptr) {
            watched_->on_readable();
            events_.show_all();
        }
    }
    return (waiting[2].revents & POLLIN) != 0;
}

void Adapter::watch(Watched* watched) noexcept {
    watched_ = watched;
    watched_fd_.store(watched == nullptr ? -1 : watched->fd(), std::memory_order_relaxed);
    wake_helper();
}

// A thread that waits for an event sleeps on the socket. It does not know of later posts of others, and may sleep
// longer than these can wait.
Adapter::Rest Adapter::rest_beside_lease(Instant now, Instant last_call) noexcept {
    (void)policy_.decide(now, now, false);
    if (posts_.any_waiting() || owes(engine().owed()) || worker_->next_deadline() <= now) {
        const Guarded did = guard_turns(now);
        flush(now);
        if (did.gives_way) {
            return {now + kGiveWay, false};
        }
    }
    const Instant until = now - last_call < kActive ? now + HelperPolicy::kNap : lease_.until();
    return {std::min(until, std::max(worker_->next_deadline(), now)), false};
}

// Needs the lock. `woken`: by the socket.
Adapter::Rest Adapter::take_helper_turn(bool woken) noexcept {
    const Instant last = last_call_;
    const Instant begin = this->now();
    if (lease_.is_held(begin)) {
        return rest_beside_lease(begin, last);
    }
    const bool parked = policy_.is_parked();
    const bool callers_poll = parked && begin - last < HelperPolicy::kPolls;
    // Packets that this turn sends leave before the next nap, not after it.
    const bool sends = !callers_poll && (owes(engine().owed()) || worker_->next_deadline() <= begin);
    const Guarded did = callers_poll ? Guarded{} : guard_turns(begin);
    const Instant now = this->now();
    if (parked) {
        policy_.on_nap_end(now, last, did.found);
    } else if (woken) {
        policy_.on_wake(did.found);
    }
    if (policy_.decide(now, last, armed_ != 0) == HelperPolicy::Mode::Park) {
        if ((sends || did.found) && !did.holds) {
            flush(now);
        }
        return {now + policy_.nap(), false};
    }
    if (!did.holds) {
        flush(now);
    }
    if (did.gives_way) {
        return {now + kGiveWay, false};
    }
    const Instant due = worker_->prepare_sleep(now);
    const Duration sleep = did.holds ? kHold : now - last < kActive ? HelperPolicy::kNap : kLong;
    const Duration longest = policy_.spins() ? Duration{} : sleep;
    return {std::min(due, now + longest), true};
}

// Gives the lease back, and with it the work that waits longer than this thread sleeps. Wakes the helper if it would
// not come soon.
void Adapter::give_back_lease() noexcept {
    const std::lock_guard hold(lock_);
    const Instant now = this->now();
    lease_.give_back(now);
    if (!helper_comes_soon(now)) {
        policy_.leave_park();
        wake_helper();
    }
}

// Takes the turns of a thread that has the lease, and renews it. Returns how it may sleep.
Adapter::Rest Adapter::guard_for_event(Instant& tired_at) noexcept {
    const Guarded did = guard_turns(this->now());
    const Instant now = this->now();
    last_call_ = did.found ? now : last_call_;
    tired_at = did.found ? now + GuardLease::kTired : tired_at;
    if (!did.holds) {
        flush(now);
    }
    lease_.renew(now);
    if (did.gives_way) {
        return {now + kGiveWay, false};
    }
    return {std::min(worker_->prepare_sleep(now), now + (did.holds ? kHold : GuardLease::kRenew)), true};
}

// Not noexcept: a thread that is cancelled in ppoll() unwinds. A signal is to end this sleep only if it would end the
// read() that a program of an adapter sleeps in. If that cannot be determined, the thread is left to read().
bool Adapter::sleep_for_event(int fd) {
    if (Interruptions::lately(read_monotonic()).are_mixed()) {
        return true;
    }
    Instant tired_at{};
    {
        const std::lock_guard hold(lock_);
        if (socket_fd_ < 0 || !lease_.take(now())) {
            return true;
        }
        tired_at = now() + GuardLease::kTired;
    }
    for (;;) {
        Rest rest;
        {
            const std::lock_guard hold(lock_);
            rest = guard_for_event(tired_at);
        }
        std::array<pollfd, 2> waiting{{{fd, POLLIN, 0}, {rest.on_socket ? socket_fd_ : -1, POLLIN, 0}}};
        const timespec left = time_until(rest.due);
        const int ready = ppoll(waiting.data(), waiting.size(), &left, nullptr);
        const int reason = errno;
        const bool ended = ready < 0 && (reason != EINTR || Interruptions::look().end);
        if (ended || waiting[0].revents != 0 || read_monotonic() >= tired_at) {
            give_back_lease();
            errno = reason;
            return !ended;
        }
    }
}

void Adapter::run_helper() noexcept {
    pthread_setname_np(pthread_self(), "cairn-helper");
    prctl(PR_SET_TIMERSLACK, 1000);  // nanoseconds; naps are to end in time
    bool woken = false;
    while (!ends_.load(std::memory_order_acquire)) {
        Rest rest;
        // While the helper is parked, a caller has the lock: it polls, and perhaps the helper has its CPU.
        const bool parked = policy_.is_parked();
        if (parked ? lock_.try_lock() : lock_.lock_soon()) {
            const std::lock_guard hold(lock_, std::adopt_lock);
            rest = take_helper_turn(woken);
            sleeps_until_ = rest.due;
        } else if (parked) {
            rest.due = read_monotonic() + policy_.nap();
            policy_.on_caller_at_work();
        } else {
            rest.due = read_monotonic() + kBusy;
        }
        woken = sleep_until(rest);
    }
}

}  // namespace cairn::ibverbs
