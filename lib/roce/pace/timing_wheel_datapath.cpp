#include "lib/roce/pace/timing_wheel_slots.hpp"

#include <bit>

namespace cairn::roce {

std::uint32_t TimingWheelSlots::empty_from(std::uint32_t from, std::uint32_t limit) const noexcept {
    std::uint32_t word = from / 64;
    const std::uint64_t here = occupied_[word] >> (from % 64);
    if (here != 0) {
        return std::min(static_cast<std::uint32_t>(std::countr_zero(here)), limit);
    }
    const std::uint32_t words = slots_ / 64;
    for (std::uint32_t empty = 64 - from % 64; empty < limit; empty += 64) {
        word = (word + 1) & (words - 1);
        if (occupied_[word] != 0) {
            return std::min(empty + static_cast<std::uint32_t>(std::countr_zero(occupied_[word])), limit);
        }
    }
    return limit;
}

void TimingWheelSlots::gather(std::uint32_t count) noexcept {
    const std::uint32_t due = slots_;
    std::uint32_t list = list_of(cursor_);
    for (std::uint32_t left = count; left > 0; --left, list = (list + 1) & (slots_ - 1)) {
        const std::uint32_t empty = empty_from(list, left);
        if (empty == left) {
            return;
        }
        left -= empty;
        list = (list + empty) & (slots_ - 1);
        const Link nodes = links_[list];
        const std::uint32_t last = links_[due].prev;
        links_[last].next = nodes.next;
        links_[nodes.next].prev = last;
        links_[nodes.prev].next = due;
        links_[due].prev = nodes.prev;
        links_[list] = {list, list};
        occupied_[list / 64] &= ~(std::uint64_t{1} << (list % 64));
    }
}

Instant TimingWheelSlots::next_due() const noexcept {
    if (size_ == 0) {
        return Instant::never();
    }
    std::int64_t slot = cursor_;
    if (links_[slots_].next == slots_) {  // else the sink asks, and more is due
        slot += empty_from(list_of(cursor_), slots_);
    }
    return {slot * kSlot.ns};
}

}  // namespace cairn::roce
