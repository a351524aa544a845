// The loop of one worker: turns until told to stop, spinning while there is work and yielding when there is none.
#pragma once

#include <atomic>
#include <cstdint>

#include "lib/base/time.hpp"
#include "pmd_glue/eal.hpp"

namespace cairn::pmd {

// Set by SIGINT and SIGTERM; every worker looks at it once per turn.
[[nodiscard]] const std::atomic<bool>& stop_requested() noexcept;
void stop_on_signals() noexcept;

// What a worker drives. run_turn() does what is there and says whether that was anything.
class WorkerTask {
public:
    virtual ~WorkerTask() = default;
    [[nodiscard]] virtual bool run_turn(Instant now) noexcept = 0;
    [[nodiscard]] virtual bool finished(Instant now) const noexcept = 0;
};

enum class Polling : std::uint8_t {
    Adaptive,  // spins, then yields the CPU, then sleeps up to 50 us
    Spin,      // never gives the CPU away: for dedicated cores
};

// Runs on the calling thread until the task is finished or a signal asks to stop.
void run_worker(WorkerTask& task, const Clock& clock, Polling polling) noexcept;

}  // namespace cairn::pmd
