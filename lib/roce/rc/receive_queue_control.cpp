#include "lib/roce/rc/receive_queue.hpp"

#include <bit>

#include "lib/base/assert.hpp"

namespace cairn::roce::rc {

ReceiveQueue::ReceiveQueue(std::uint32_t slots, std::uint32_t max_sges)
    : slots_(slots), max_sges_(max_sges), mask_(std::bit_ceil(slots) - 1), ring_(std::size_t{mask_} + 1) {
    CAIRN_ASSERT(slots >= 1 && slots <= kMaxQueueSlots);
    CAIRN_ASSERT(max_sges >= 1 && max_sges <= kMaxSges);
}

}  // namespace cairn::roce::rc
