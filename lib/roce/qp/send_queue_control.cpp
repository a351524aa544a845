#include "lib/roce/qp/send_queue.hpp"

#include <bit>

#include "lib/base/assert.hpp"

namespace cairn::roce {

SendQueue::SendQueue(std::uint32_t slots, std::uint32_t max_sges, std::uint32_t inline_bytes)
    : slots_(slots),
      max_sges_(max_sges),
      inline_bytes_(inline_bytes),
      mask_(std::bit_ceil(slots) - 1),
      room_sges_(room_sges(max_sges, inline_bytes)),
      ring_(std::size_t{mask_} + 1),
      rooms_(ring_.size() * room_sges_) {
    CAIRN_ASSERT(slots >= 1 && slots <= kMaxQueueSlots);
    CAIRN_ASSERT(max_sges >= 1 && max_sges <= kMaxSges);
    CAIRN_ASSERT(inline_bytes <= kMaxInlineBytes);
}

}  // namespace cairn::roce
