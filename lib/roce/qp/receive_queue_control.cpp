#include "lib/roce/qp/receive_queue.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "lib/base/assert.hpp"

namespace cairn::roce {

ReceiveQueue::ReceiveQueue(std::uint32_t slots, std::uint32_t max_sges)
    : slots_(slots),
      max_sges_(max_sges),
      mask_(std::bit_ceil(slots) - 1),
      ring_(std::size_t{mask_} + 1),
      sges_(ring_.size() * max_sges) {
    CAIRN_ASSERT(slots >= 1 && slots <= kMaxQueueSlots);
    CAIRN_ASSERT(max_sges <= kMaxSges);
}

Status ReceiveQueue::resize(std::uint32_t slots) {
    if (slots < 1 || slots > kMaxQueueSlots) {
        return Error{"a receive queue of " + std::to_string(slots) + " entries",
                     "ask for 1 to " + std::to_string(kMaxQueueSlots)};
    }
    if (size() > slots) {
        return Error{"the receive queue holds more than that", "wait until some are taken"};
    }
    std::vector<ReceiveHead> ring(std::bit_ceil(slots));
    std::vector<Sge> sges(ring.size() * max_sges_);
    const auto mask = static_cast<std::uint32_t>(ring.size() - 1);
    for (std::uint32_t position = head_; position != tail_; ++position) {
        ring[position & mask] = ring_[position & mask_];
        std::copy_n(sges_.data() + sges_of(position), max_sges_,
                    sges.data() + std::size_t{position & mask} * max_sges_);
    }
    ring_ = std::move(ring);
    sges_ = std::move(sges);
    slots_ = slots;
    mask_ = mask;
    return Nothing{};
}

}  // namespace cairn::roce
