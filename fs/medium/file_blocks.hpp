// Checks the disk blocks of a file.
#pragma once

#include <cstddef>

namespace cairn::fs {

// Returns true if the file has blocks of its own for each of its first `bytes`, written or not. Returns false if it
// lacks some, or shares some with another file. Also returns false if the file system does not say (tmpfs). Writes
// nothing back. Any thread.
[[nodiscard]] bool has_all_blocks(int fd, std::size_t bytes) noexcept;

}  // namespace cairn::fs
