// DPDK's control thread (it serves interrupts and alarms): errands that have to run there, and its end.
#pragma once

namespace cairn::pmd {

// Runs function(argument) on the control thread and returns when it is done; on the calling thread when EAL cannot.
void run_on_control_thread(void (*function)(void* argument), void* argument) noexcept;

// Keeps the control thread from doing anything more, until the process ends; the last call before rte_eal_cleanup().
// That wakes the thread and unmaps what its lists point to: net_memif leaves its listener in them (DPDK 22.11).
void park_control_thread() noexcept;

}  // namespace cairn::pmd
