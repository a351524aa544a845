// Removes files of this process that would be in the way of the next process if this one ended at once.
#pragma once

#include <string>

namespace cairn::pmd {

// Remembers the file. Called on the main thread, before the file exists. Only the first few files are remembered.
void remember_leftover(const std::string& path) noexcept;
// Removes the files. Async-signal-safe.
void remove_leftovers() noexcept;

}  // namespace cairn::pmd
