#include "lib/roce/qp/completion_queue.hpp"

#include <bit>
#include <string>
#include <utility>

#include "lib/base/assert.hpp"

namespace cairn::roce {

CompletionQueue::CompletionQueue(std::uint32_t slots)
    : slots_(slots), mask_(std::bit_ceil(slots) - 1), ring_(std::size_t{mask_} + 1) {
    CAIRN_ASSERT(slots >= 1 && slots <= kMaxCompletionSlots);
}

Status CompletionQueue::resize(std::uint32_t slots) {
    if (slots < 1 || slots > kMaxCompletionSlots) {
        return Error{"a completion queue of " + std::to_string(slots) + " entries",
                     "ask for 1 to " + std::to_string(kMaxCompletionSlots)};
    }
    if (size() > slots) {
        return Error{"the completion queue holds more than that", "poll it first"};
    }
    std::vector<Completion> ring(std::bit_ceil(slots));
    const auto mask = static_cast<std::uint32_t>(ring.size() - 1);
    for (std::uint32_t position = head_; position != tail_; ++position) {
        ring[position & mask] = at(position);
    }
    ring_ = std::move(ring);
    slots_ = slots;
    mask_ = mask;
    return Nothing{};
}

}  // namespace cairn::roce
