#include "lib/roce/qp/send_queue.hpp"

#include <bit>

#include "lib/base/assert.hpp"

namespace cairn::roce {

SendQueue::SendQueue(std::uint32_t slots, std::uint32_t max_sges, std::uint32_t inline_bytes)
    : slots_(slots),
      max_sges_(max_sges),
      inline_bytes_(inline_bytes),
      mask_(std::bit_ceil(slots) - 1),
      ring_(std::size_t{mask_} + 1),
      inline_(ring_.size() * inline_bytes) {
    CAIRN_ASSERT(slots >= 1 && slots <= kMaxQueueSlots);
    CAIRN_ASSERT(max_sges >= 1 && max_sges <= kMaxSges);
    CAIRN_ASSERT(inline_bytes <= kMaxInlineBytes);
}

}  // namespace cairn::roce
