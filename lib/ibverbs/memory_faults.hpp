// Registered memory that the program unmapped: the engine's access to it fails as an access error, not by a signal.
#pragma once

namespace cairn::ibverbs {

// Puts our handler of SIGSEGV and SIGBUS in front of the program's. Faults that are not the engine's go to that, as if
// we were not there. Programs set handlers of their own at any time, so that this is called wherever memory or queue
// pairs are made ready; it costs two system calls. Any thread.
void catch_memory_faults() noexcept;

// In a child of fork(), which another thread of its parent's may have interrupted there.
void orphan_memory_faults() noexcept;

}  // namespace cairn::ibverbs
