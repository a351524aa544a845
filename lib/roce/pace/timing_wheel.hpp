// Timing wheel: keeps entries until their times, and hands them out then. Pacing sends packets through it (Carousel:
// Saeed et al., SIGCOMM 2017; eRPC: Kalia et al., NSDI 2019, section 5.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "lib/roce/pace/timing_wheel_slots.hpp"

namespace cairn::roce {

// Holds up to `capacity` entries until their times. Driven by one thread; allocates only in the constructor.
//
// An entry is due in the first slot that does not begin before its time. So it is never handed out early. It is late by
// less than a slot plus the caller's own pause between two calls of advance(). A session that computes the time of each
// packet from the time of the one before thus keeps its rate exactly.
//
// The wheel's present is the latest `now` given; an earlier one counts as that. An entry with a past time goes to the
// current slot. An entry later than horizon() after the present may go to the last slot, hence be handed out early; it
// is counted. So choose the horizon by the longest gap that pacing can ask for (window x packet / least rate). Call
// advance() first in each turn, even with an empty wheel, so that the present is not an old one.
template <class Entry>
class TimingWheel {
    static_assert(std::is_trivially_copyable_v<Entry> && std::is_default_constructible_v<Entry>);

public:
    using Handle = TimingWheelHandle;

    // Makes an empty wheel. `horizon` is in (0, kTimingWheelHorizonMax]; the number of slots for it is a power of two,
    // 64 or more. `capacity` is in [1, kTimingWheelCapacityMax].
    TimingWheel(Duration horizon, std::uint32_t capacity, Instant now)
        : slots_(horizon, capacity, now), entries_(capacity) {}

    // Adds an entry. Returns the empty handle if the wheel is full: the caller keeps the entry.
    [[nodiscard]] Handle insert(const Entry& entry, Instant when) noexcept {
        const std::uint32_t node = slots_.insert(when);
        if (node == 0) [[unlikely]] {
            return {};
        }
        entries_[slots_.place_of(node)] = entry;
        return {node, slots_.generation(node)};
    }
    // Hands every entry that is due to sink(const Entry&), by slot and first in, first out within a slot. Returns their
    // number. Takes time in the order of these entries and, after a long pause, of the slots, however long it was. The
    // sink may insert and cancel, but not advance. An entry that it inserts waits for the next call even if it is due.
    template <class Sink>
    std::size_t advance(Instant now, Sink&& sink) noexcept {
        slots_.collect_due(now);
        std::size_t handed_out = 0;
        while (const std::uint32_t node = slots_.pop_due()) {
            const Entry entry = entries_[slots_.place_of(node)];
            sink(entry);
            ++handed_out;
        }
        return handed_out;
    }
    // Removes an entry. Returns false if the handle names none: never inserted, handed out, or cancelled before.
    bool cancel(Handle handle) noexcept {
        if (!slots_.holds(handle)) {
            return false;
        }
        slots_.remove(handle.node);
        return true;
    }

    // Returns the exact earliest `now` at which advance() hands something out; Instant::never() if the wheel is empty.
    // The time is past if an entry waits that was due at once. Changes by insert(), cancel() and advance().
    [[nodiscard]] Instant next_due() const noexcept { return slots_.next_due(); }
    [[nodiscard]] bool contains(Handle handle) const noexcept { return slots_.holds(handle); }
    [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
    [[nodiscard]] std::size_t capacity() const noexcept { return entries_.size(); }
    // Returns the longest time after the present that is not clamped.
    [[nodiscard]] Duration horizon() const noexcept { return kSlot * (std::int64_t{slots_.slots()} - 2); }
    [[nodiscard]] std::uint64_t clamped() const noexcept { return slots_.clamped(); }
    void check_invariants() const noexcept { slots_.check_invariants(); }

private:
    TimingWheelSlots slots_;
    std::vector<Entry> entries_;  // [capacity]
};

}  // namespace cairn::roce
