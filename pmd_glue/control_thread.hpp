// DPDK's control thread (it serves interrupts and alarms): errands that have to run there, and waiting for it.
#pragma once

namespace cairn::pmd {

// Runs function(argument) on the control thread and returns when it is done; on the calling thread when EAL cannot.
void run_on_control_thread(void (*function)(void* argument), void* argument) noexcept;

// Returns when the control thread has dealt with all that was started before, its own lists included. rte_eal_cleanup()
// unmaps what they point to and does not wait (DPDK 22.11).
void settle_control_thread() noexcept;

}  // namespace cairn::pmd
