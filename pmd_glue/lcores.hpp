// Runs the workers of a program on EAL's lcores: one polling loop each, until it is asked to stop.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/telemetry/counters.hpp"
#include "lib/worker/loop.hpp"
#include "pmd_glue/eal.hpp"

namespace cairn::pmd {

// Makes SIGINT and SIGTERM end every worker's loop within a turn. A second signal, 100 ms later or more, ends the
// process at once.
void stop_on_signals() noexcept;
// Stops the loops from within the program. Any thread may call it.
void request_stop() noexcept;
// Returns whether a loop that does not belong to an lcore is to stop.
[[nodiscard]] bool stop_requested() noexcept;

// Returns the number of EAL's lcores, which is the number of workers of an application.
[[nodiscard]] std::uint16_t worker_count() noexcept;

// Returns the CPUs for a program's other threads, which would otherwise share their creator's lcore. They are the CPUs
// that the process might use before EAL started, without those of the lcores; or all of them, if none is left.
[[nodiscard]] std::vector<std::uint32_t> cpus_beside_lcores();

// X(enumerator, counter name, what non-zero means)
#define CAIRN_CLOCK_COUNTERS(X)                                                                              \
    X(WentBack, "clock_went_back", "times the CPU's counter went back: to the worker none passed meanwhile") \
    X(Leapt, "clock_leapt", "times the counter leapt or the worker was kept from running: 1 s of each counts")

CAIRN_DECLARE_COUNTERS(ClockCounter, CAIRN_CLOCK_COUNTERS);

// Runs task i on lcore i, the first one on the calling (main) lcore. There are at most worker_count() tasks. Returns
// when all are finished or a signal asks to stop, with the jumps of their clocks. Each task gets a time that does not
// go back (SteadyTime), of the same clock that the program used before.
telemetry::CounterSnapshot<ClockCounter> run_workers(std::span<worker::Task* const> tasks, const Clock& clock,
                                                     worker::Polling polling) noexcept;

}  // namespace cairn::pmd
