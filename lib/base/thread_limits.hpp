// Which limit keeps a thread from starting.
#pragma once

namespace cairn {

// Returns the remedy for a thread that was refused: the C library says the same (EAGAIN) of all limits. Address space
// is the reason if a stack finds none.
[[nodiscard]] const char* remedy_for_threads() noexcept;

}  // namespace cairn
