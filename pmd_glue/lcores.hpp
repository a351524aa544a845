// A program's workers on EAL's lcores: one polling loop each, until told to stop.
#pragma once

#include <cstdint>
#include <span>

#include "lib/telemetry/counters.hpp"
#include "lib/worker/loop.hpp"
#include "pmd_glue/eal.hpp"

namespace cairn::pmd {

// SIGINT and SIGTERM end every worker's loop within a turn; a second one, 100 ms later or more, the process at once.
void stop_on_signals() noexcept;
// The same from within; any thread.
void request_stop() noexcept;

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
telemetry::CounterSnapshot<ClockCounter> run_workers(std::span<worker::Task* const> tasks, const Clock& clock,
                                                     worker::Polling polling) noexcept;

}  // namespace cairn::pmd
