// Workers: one polling loop per lcore, turns until told to stop; spinning while there is work, yielding the CPU
// when there is none.
#pragma once

#include <cstdint>
#include <span>

#include "lib/base/time.hpp"
#include "lib/telemetry/counters.hpp"
#include "pmd_glue/eal.hpp"

namespace cairn::pmd {

// SIGINT and SIGTERM end every worker's loop within a turn; a second one, 100 ms later or more, the process at once.
void stop_on_signals() noexcept;
// The same from within; any thread.
void request_stop() noexcept;

// What a worker drives. run_turn() does what is there and says whether that was anything. It goes on being called when
// its task is finished, until all tasks are: what other workers send and receive may pass through its port.
class WorkerTask {
public:
    virtual ~WorkerTask() = default;
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

// The lcores that EAL was given: how many workers an application has.
[[nodiscard]] std::uint16_t worker_count() noexcept;

// X(enumerator, counter name, what non-zero means)
#define CAIRN_CLOCK_COUNTERS(X)                                                                              \
    X(WentBack, "clock_went_back", "times the CPU's counter went back: to the worker none passed meanwhile") \
    X(Leapt, "clock_leapt", "times the counter leapt or the worker was kept from running: 1 s of each counts")

CAIRN_DECLARE_COUNTERS(ClockCounter, CAIRN_CLOCK_COUNTERS);

// Runs task i on lcore i, the first on the calling (main) one; returns when all are finished or a signal asks to
// stop, with what befell their clocks. There are at most worker_count() tasks. Each is given a time that does not go
// back (SteadyTime); the clock is as well that of what was prepared before.
telemetry::CounterSnapshot<ClockCounter> run_workers(std::span<WorkerTask* const> tasks, const Clock& clock,
                                                     Polling polling) noexcept;

}  // namespace cairn::pmd
