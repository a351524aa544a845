// Finds the limit that keeps a thread from starting.
#pragma once

namespace cairn {

// Returns the remedy for a thread that could not be started. The C library reports EAGAIN for every limit, so the
// function maps a stack on trial. If that fails, address space is the limit.
[[nodiscard]] const char* remedy_for_threads() noexcept;

}  // namespace cairn
