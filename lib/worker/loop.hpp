// The loop of a thread that turns one thing over and over: spinning while there is work, giving the CPU away when there
// is none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lib/base/steady_time.hpp"
#include "lib/base/time.hpp"

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

// Where a loop's thread gets its time, and what else it does each turn.
class LoopHost {
public:
    LoopHost() = default;
    LoopHost(const LoopHost&) = delete;
    LoopHost& operator=(const LoopHost&) = delete;
    // May go back or leap: the task is given a time that does not.
    [[nodiscard]] virtual Instant read_clock() noexcept = 0;
    // Before each turn.
    virtual void pass() noexcept {}

protected:
    ~LoopHost() = default;
};

// Runs the task until the group is finished or stopped; returns what befell its clock.
SteadyTime run_loop(Task& task, LoopGroup& group, LoopHost& host) noexcept;

}  // namespace cairn::worker
