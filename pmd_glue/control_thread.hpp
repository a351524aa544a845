// Runs functions on DPDK's control thread, which serves interrupts and alarms, and ends its work.
#pragma once

namespace cairn::pmd {

// Runs function(argument) on the control thread and waits for it. Runs it on the calling thread if EAL cannot do that.
void run_on_control_thread(void (*function)(void* argument), void* argument) noexcept;

// Stops the control thread's work until the process ends. It is the last call before rte_eal_cleanup(), which wakes the
// thread and unmaps memory that its lists point to. net_memif leaves its listener in these lists (DPDK 22.11).
void park_control_thread() noexcept;

}  // namespace cairn::pmd
