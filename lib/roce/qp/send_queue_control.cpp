#include "lib/roce/qp/send_queue.hpp"

#include <bit>

#include "lib/base/assert.hpp"

namespace cairn::roce {

namespace {

constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;  // 2^64 divided by it: products have well mixed high bits

}  // namespace

SendQueue::SendQueue(std::uint32_t slots, std::uint32_t max_sges, std::uint32_t inline_bytes)
    : slots_(slots),
      max_sges_(max_sges),
      inline_bytes_(inline_bytes),
      mask_(std::bit_ceil(slots) - 1),
      room_sges_(room_sges(max_sges, inline_bytes)),
      ring_(std::size_t{mask_} + 1),
      rooms_(room_lines(ring_.size() * room_sges_)) {
    CAIRN_ASSERT(slots >= 1 && slots <= kMaxQueueSlots);
    CAIRN_ASSERT(max_sges >= 1 && max_sges <= kMaxSges);
    CAIRN_ASSERT(inline_bytes <= kMaxInlineBytes);
}

// Chooses the first slot by the ring's address. Rings of one size lie at equal distances, and their first slots would
// fall into a few sets of the caches.
void SendQueue::reuse_slots() noexcept {
    CAIRN_ASSERT(empty());
    reuses_ = true;
    colour_ = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(ring_.data()) * kGoldenRatio >> 40U) & mask_;
}

}  // namespace cairn::roce
