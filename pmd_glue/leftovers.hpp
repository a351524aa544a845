// Files that this process makes and that would be in the way of the next one if it ended at once.
#pragma once

#include <string>

namespace cairn::pmd {

// Before there is a file of that name. Main thread; those beyond the first few are left to the operator.
void remember_leftover(const std::string& path) noexcept;
// Removes them. Async-signal-safe.
void remove_leftovers() noexcept;

}  // namespace cairn::pmd
