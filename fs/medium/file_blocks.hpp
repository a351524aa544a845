// What blocks of its disk a file has.
#pragma once

#include <cstddef>

namespace cairn::fs {

// Returns true if the file has blocks of its own for each of its first `bytes`, written or not. Returns false if it
// lacks some yet, shares some with another file, or is in a file system that does not say (tmpfs). Writes nothing back.
// Any thread.
[[nodiscard]] bool has_all_blocks(int fd, std::size_t bytes) noexcept;

}  // namespace cairn::fs
