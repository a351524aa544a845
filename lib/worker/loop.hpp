// The loop of a thread that turns one thing over and over: spinning while there is work, giving the CPU away when there
// is none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lib/base/steady_time.hpp"
#include "lib/base/time.hpp"
#include "lib/worker/adaptive_spin.hpp"

namespace cairn::worker {

// What a loop drives. run_turn() does what is there and says whether that was anything. It goes on being called when
// its task is finished, until all tasks are: what other workers send and receive may pass through its port.
class Task {
public:
    Task() = default;
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;
    virtual ~Task() = default;
    [[nodiscard]] virtual bool run_turn(Instant now) noexcept = 0;
    // Asked after turns that found nothing to do, until it says so once.
    [[nodiscard]] virtual bool finished(Instant now) const noexcept = 0;
    // True when wait() sleeps until something arrives: then there is no need to yield and look again.
    [[nodiscard]] virtual bool can_wait() const noexcept { return false; }
    // Called when the worker may sleep: at most until something is due, and less than SteadyTime::kStepMost.
    virtual void wait(Instant now) noexcept;
};

enum class Polling : std::uint8_t {
    Adaptive,  // spins, then yields the CPU, then sleeps up to 50 us; how long it spins follows what spinning finds
    Spin,      // never gives the CPU away: for dedicated cores
};

// What the loops of one run have in common.
struct LoopGroup {
    const std::atomic<bool>& stop;        // every loop ends within a turn
    std::atomic<std::size_t> unfinished;  // tasks: the loops end when there are none
    Polling polling;
};

namespace detail {
void spin() noexcept;
// How often this thread lost its CPU to another one.
[[nodiscard]] std::uint64_t preemptions() noexcept;
void give_way(Task& task, AdaptiveSpin::Advice advice, Instant now) noexcept;
}  // namespace detail

// Runs the task until the group is finished or stopped; returns what befell its clock. `Host` is the loop's thread:
// read_clock() gives a time that may go back or leap (the task is given one that does not), pass() is called before
// each turn.
template <class Host>
SteadyTime run_loop(Task& task, LoopGroup& group, Host& host) noexcept {
    SteadyTime time;
    AdaptiveSpin idleness;
    bool finished = false;
    while (!group.stop.load(std::memory_order_relaxed) &&
           (!finished || group.unfinished.load(std::memory_order_relaxed) != 0)) {
        const Instant now = time.on_reading(host.read_clock());
        host.pass();
        if (task.run_turn(now)) {
            idleness.on_work(now);
            if (group.polling == Polling::Adaptive && task.can_wait() && idleness.may_sleep_at_once()) {
                task.wait(now);
            }
        } else if (!finished && task.finished(now)) {
            finished = true;
            group.unfinished.fetch_sub(1, std::memory_order_relaxed);
        } else if (group.polling == Polling::Spin) {
            detail::spin();
        } else {
            detail::give_way(task, idleness.on_idle(now, detail::preemptions), now);
        }
    }
    return time;
}

}  // namespace cairn::worker
