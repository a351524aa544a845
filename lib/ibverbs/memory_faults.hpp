// Registered memory that the program unmapped: the engine's access to it fails as an access error, not by a signal.
#pragma once

namespace cairn::ibverbs {

// Puts our handler of SIGSEGV and SIGBUS in front of the program's. Faults that are not the engine's go to that
// handler. Programs set handlers of their own at any time, so this is called wherever memory or queue pairs are made
// ready. It costs two system calls. Any thread.
void catch_memory_faults() noexcept;

// Resets the handler in a child of fork(). Another thread of the parent may have been in the midst of setting it.
void orphan_memory_faults() noexcept;

}  // namespace cairn::ibverbs
