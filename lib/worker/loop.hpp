// The loop of a thread that turns one task over and over. It spins while there is work, and gives the CPU away while
// there is none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lib/base/steady_time.hpp"
#include "lib/base/time.hpp"
#include "lib/worker/adaptive_spin.hpp"
#include "lib/worker/eager_spin.hpp"

namespace cairn::worker {

// A task of a loop. run_turn() does the work that is there and returns true if there was any. The loop goes on calling
// it after the task is finished, until all tasks are: packets of other workers may pass through its port.
class Task {
public:
    static constexpr Duration kLongestWait = milliseconds(10);  // a request to stop does not wake the sleeper

    Task() = default;
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;
    virtual ~Task() = default;
    [[nodiscard]] virtual bool run_turn(Instant now) noexcept = 0;
    // Returns true if the task is finished. The loop asks after turns without work, until it gets true once.
    [[nodiscard]] virtual bool finished(Instant now) const noexcept = 0;
    // Returns true if wait() sleeps until something arrives. The loop then need not yield and look again.
    [[nodiscard]] virtual bool can_wait() const noexcept { return false; }
    // Sleeps until something is due at the latest, and for less than SteadyTime::kStepMost. The loop calls it when the
    // worker may sleep.
    virtual void wait(Instant now) noexcept;
};

enum class Polling : std::uint8_t {
    Adaptive,  // spins, then yields the CPU, then sleeps up to 50 us; the length of a spin follows its success
    Spin,      // never gives the CPU away; for dedicated cores
};

// The state that the loops of one run share.
struct LoopGroup {
    const std::atomic<bool>& stop;        // each loop ends within a turn after this is set
    std::atomic<std::size_t> unfinished;  // number of tasks; the loops end when it is 0
    Polling polling;
};

namespace detail {
void spin() noexcept;
// Returns how often this thread lost its CPU to another one.
[[nodiscard]] std::uint64_t preemptions() noexcept;
void give_way(Task& task, AdaptiveSpin::Advice advice, Instant now) noexcept;
}  // namespace detail

// Runs the task until the group is finished or stopped. Returns the time source, which has counted the clock's jumps.
// `Host` is the loop's thread. Its read_clock() returns a time that may go back or leap; the task gets a time that does
// neither. Its pass() is called before each turn.
template <class Host>
SteadyTime run_loop(Task& task, LoopGroup& group, Host& host) noexcept {
    SteadyTime time;
    AdaptiveSpin idleness;
    EagerSpin eagerness;
    bool finished = false;
    while (!group.stop.load(std::memory_order_relaxed) &&
           (!finished || group.unfinished.load(std::memory_order_relaxed) != 0)) {
        const Instant now = time.on_reading(host.read_clock());
        host.pass();
        if (task.run_turn(now)) {
            idleness.on_work(now);
            eagerness.on_work();
            if (group.polling == Polling::Adaptive && task.can_wait() && idleness.may_sleep_at_once()) {
                task.wait(now);
            }
        } else if (!finished && task.finished(now)) {
            finished = true;
            group.unfinished.fetch_sub(1, std::memory_order_relaxed);
        } else if (group.polling == Polling::Spin) {
            if (eagerness.on_idle()) {
                detail::spin();
            }
        } else {
            detail::give_way(task, idleness.on_idle(now, detail::preemptions), now);
        }
    }
    return time;
}

}  // namespace cairn::worker
