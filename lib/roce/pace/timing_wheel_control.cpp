#include "lib/roce/pace/timing_wheel.hpp"

#include <bit>

namespace cairn::roce {

namespace {

// A time at the horizon can lie in the slot two after the last whole one: the present is rounded down, the time is not.
std::uint32_t slots_for(Duration horizon) noexcept {
    CAIRN_ASSERT(horizon > Duration{} && horizon <= kTimingWheelHorizonMax);
    const auto whole = static_cast<std::uint32_t>((horizon.ns + kSlot.ns - 1) / kSlot.ns);
    return std::max(std::bit_ceil(whole + 2), 64U);
}

}  // namespace

TimingWheelSlots::TimingWheelSlots(Duration horizon, std::uint32_t capacity, Instant now)
    : cursor_(slot_at_or_before(now)),
      slots_(slots_for(horizon)),
      free_(slots_ + 1),
      links_(std::size_t{slots_} + 1 + capacity),
      occupied_(slots_ / 64),
      generations_(capacity) {
    CAIRN_ASSERT(capacity > 0 && capacity <= kTimingWheelCapacityMax);
    for (std::uint32_t list = 0; list <= slots_; ++list) {
        links_[list] = {list, list};
    }
    for (std::uint32_t place = 0; place < capacity; ++place) {
        const std::uint32_t node = slots_ + 1 + place;
        links_[node] = {place + 1 < capacity ? node + 1 : 0, 0};
    }
}

void TimingWheelSlots::check_invariants() const noexcept {
    std::uint32_t linked = 0;
    for (std::uint32_t list = 0; list <= slots_; ++list) {
        for (std::uint32_t node = list; links_[node].next != list; node = links_[node].next) {
            CAIRN_ASSERT(links_[links_[node].next].prev == node);
            CAIRN_ASSERT(++linked <= generations_.size());
        }
        const bool marked = list < slots_ && (occupied_[list / 64] >> (list % 64) & 1U) != 0;
        CAIRN_ASSERT(list == slots_ || marked == (links_[list].next != list));
    }
    CAIRN_ASSERT(linked == size_);
    std::size_t unused = 0;
    for (std::uint32_t node = free_; node != 0; node = links_[node].next) {
        CAIRN_ASSERT(++unused <= generations_.size());
    }
    CAIRN_ASSERT(unused + size_ == generations_.size());
}

}  // namespace cairn::roce
