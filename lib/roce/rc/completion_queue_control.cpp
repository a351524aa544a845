#include "lib/roce/rc/completion_queue.hpp"

#include <bit>

#include "lib/base/assert.hpp"

namespace cairn::roce::rc {

CompletionQueue::CompletionQueue(std::uint32_t slots)
    : slots_(slots), mask_(std::bit_ceil(slots) - 1), ring_(std::size_t{mask_} + 1) {
    CAIRN_ASSERT(slots >= 1 && slots <= kMaxCompletionSlots);
}

}  // namespace cairn::roce::rc
