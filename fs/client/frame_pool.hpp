// Memory for the frames of coroutines.
#pragma once

#include <cstddef>

namespace cairn::fs {

// Keeps the frames that ended on a thread, by size, for that thread's next ones. Without memory the process ends.
class FramePool {
public:
    static constexpr std::size_t kStepBytes = 256;
    static constexpr std::size_t kKeptBytes = 8192;  // a larger frame is not kept

    [[nodiscard]] static void* take(std::size_t bytes) noexcept;
    static void give(void* frame, std::size_t bytes) noexcept;
};

}  // namespace cairn::fs
