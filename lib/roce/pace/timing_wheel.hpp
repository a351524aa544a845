// Timing wheel: keeps what is to happen at a time and hands it out when the time has come. Pacing sends packets
// through it (Carousel: Saeed et al., SIGCOMM 2017; eRPC: Kalia et al., NSDI 2019, section 5.2).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "lib/base/assert.hpp"
#include "lib/base/time.hpp"

namespace cairn::roce {

constexpr Duration kSlot = nanoseconds(500);                 // as in eRPC
constexpr Duration kTimingWheelHorizonMax = seconds(1);      // 2^21 slots, 16 MiB
constexpr std::uint32_t kTimingWheelCapacityMax = 1U << 30;  // entries

// Names one entry until it is handed out or cancelled; after that it names nothing, even when the place is used
// again (until 2^32 uses later). The default names nothing.
struct TimingWheelHandle {
    std::uint32_t node = 0;
    std::uint32_t generation = 0;
    constexpr explicit operator bool() const noexcept { return node != 0; }
};

// The wheel without what its entries carry: nodes in lists, one list per slot. Used by TimingWheel alone.
class TimingWheelSlots {
public:
    TimingWheelSlots(Duration horizon, std::uint32_t capacity, Instant now);

    // A node in the slot of `when`, or 0 when all are in use.
    // mutants: pace-timing-wheel-slots-insert
    [[nodiscard]] std::uint32_t insert(Instant when) noexcept {
        const std::uint32_t node = free_;
        if (node == 0) [[unlikely]] {
            return 0;
        }
        free_ = links_[node].next;
        std::int64_t slot = std::max(slot_at_or_after(when), cursor_);
        if (slot - cursor_ >= slots_) [[unlikely]] {
            slot = cursor_ + slots_ - 1;
            ++clamped_;
        }
        const std::uint32_t list = list_of(slot);
        const std::uint32_t last = links_[list].prev;
        links_[node] = {list, last};
        links_[last].next = node;
        links_[list].prev = node;
        occupied_[list / 64] |= std::uint64_t{1} << (list % 64);
        ++size_;
        return node;
    }
    // Moves all that is due at `now` to the list of due nodes, by slot and within a slot by age.
    // mutants: pace-timing-wheel-slots-collect-due
    void collect_due(Instant now) noexcept {
        CAIRN_ASSERT(links_[slots_].next == slots_);
        const std::int64_t target = std::max(slot_at_or_before(now), cursor_);
        if (size_ != 0) {
            gather(static_cast<std::uint32_t>(std::min<std::int64_t>(target - cursor_ + 1, slots_)));
        }
        cursor_ = target;
    }
    // The first due node, now free again (its number stays valid to read the entry by), or 0.
    [[nodiscard]] std::uint32_t pop_due() noexcept {
        const std::uint32_t node = links_[slots_].next;
        if (node == slots_) {
            return 0;
        }
        remove(node);
        return node;
    }
    // mutants: pace-timing-wheel-slots-remove
    void remove(std::uint32_t node) noexcept {
        const Link link = links_[node];
        links_[link.prev].next = link.next;
        links_[link.next].prev = link.prev;
        if (link.prev == link.next && link.next < slots_) {  // it was the only one of its slot
            occupied_[link.next / 64] &= ~(std::uint64_t{1} << (link.next % 64));
        }
        ++generations_[place_of(node)];
        links_[node].next = free_;
        free_ = node;
        --size_;
    }

    [[nodiscard]] Instant next_due() const noexcept;
    [[nodiscard]] std::uint32_t place_of(std::uint32_t node) const noexcept { return node - slots_ - 1; }
    [[nodiscard]] std::uint32_t generation(std::uint32_t node) const noexcept { return generations_[place_of(node)]; }
    [[nodiscard]] bool holds(TimingWheelHandle handle) const noexcept {
        return handle && generation(handle.node) == handle.generation;
    }
    [[nodiscard]] std::uint32_t slots() const noexcept { return slots_; }
    [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
    [[nodiscard]] std::uint64_t clamped() const noexcept { return clamped_; }
    void check_invariants() const noexcept;

private:
    // Slots are numbered from the epoch; far from it the numbers end, so that no sum of them overflows.
    static constexpr std::int64_t kSlotMax = std::numeric_limits<std::int64_t>::max() / kSlot.ns - (1LL << 32);
    static std::int64_t slot_at_or_before(Instant when) noexcept {
        return std::clamp(when.ns / kSlot.ns - (when.ns % kSlot.ns < 0 ? 1 : 0), -kSlotMax, kSlotMax);
    }
    // mutants: pace-timing-wheel-slots-at-or-after
    static std::int64_t slot_at_or_after(Instant when) noexcept {
        return when.ns / kSlot.ns + (when.ns % kSlot.ns > 0 ? 1 : 0);
    }
    [[nodiscard]] std::uint32_t list_of(std::int64_t slot) const noexcept {
        return static_cast<std::uint32_t>(slot) & (slots_ - 1);
    }
    // How many slots from list `from` on are empty; `limit` when no fewer are.
    [[nodiscard]] std::uint32_t empty_from(std::uint32_t from, std::uint32_t limit) const noexcept;
    // Collects from the `count` slots that begin at the cursor.
    void gather(std::uint32_t count) noexcept;

    // Lists are circles through a node of their own: nodes 0 to slots_ - 1 are the slots', node slots_ that of the
    // list of due nodes, the others are entries.
    struct Link {
        std::uint32_t next;
        std::uint32_t prev;
    };
    std::int64_t cursor_;                     // the current slot: that of the latest `now`
    std::uint32_t slots_;                     // a power of two, at least 64
    std::uint32_t size_ = 0;                  // nodes in lists
    std::uint32_t free_;                      // first free node, linked by `next`; 0: none
    std::uint64_t clamped_ = 0;               // inserted beyond the last slot
    std::vector<Link> links_;                 // [slots_ + 1 + capacity]
    std::vector<std::uint64_t> occupied_;     // [slots_ / 64], a bit per slot that is not empty
    std::vector<std::uint32_t> generations_;  // [capacity], counts the uses of each node
};

// Holds up to `capacity` entries until their times. Driven by one thread; allocates in the constructor alone.
//
// An entry is due in the first slot that does not begin before its time: it is never handed out early, and late by
// less than a slot plus the caller's own pause between two calls of advance(). A session that computes the time of
// each packet from that of the one before thus keeps its rate exactly.
//
// The wheel's present is the latest `now` given (an earlier one counts as that). A time in the past goes to the
// current slot. One later than horizon() after the present may go to the last slot, hence be handed out early, and is
// counted: choose the horizon by the longest gap pacing can ask for (window x packet / least rate), and advance first
// in each turn, empty or not, so that the present is not an old one.
template <class Entry>
class TimingWheel {
    static_assert(std::is_trivially_copyable_v<Entry> && std::is_default_constructible_v<Entry>);

public:
    using Handle = TimingWheelHandle;

    // horizon: (0, kTimingWheelHorizonMax]; the slots behind it are a power of two, 64 or more.
    // capacity: [1, kTimingWheelCapacityMax].
    TimingWheel(Duration horizon, std::uint32_t capacity, Instant now)
        : slots_(horizon, capacity, now), entries_(capacity) {}

    // The empty handle when the wheel is full: the caller keeps the entry.
    [[nodiscard]] Handle insert(const Entry& entry, Instant when) noexcept {
        const std::uint32_t node = slots_.insert(when);
        if (node == 0) [[unlikely]] {
            return {};
        }
        entries_[slots_.place_of(node)] = entry;
        return {node, slots_.generation(node)};
    }
    // Hands every entry that is due to sink(const Entry&), by slot and first in, first out within a slot; returns how
    // many. Takes time in the order of these and, after a long pause, of the slots, however long it was. The sink may
    // insert and cancel, not advance; what it inserts waits for the next call even if it is due.
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
    // False when the handle names nothing any more: never inserted, handed out, or cancelled before.
    bool cancel(Handle handle) noexcept {
        if (!slots_.holds(handle)) {
            return false;
        }
        slots_.remove(handle.node);
        return true;
    }

    // The earliest `now` at which advance() hands something out, exactly; Instant::never() when empty. In the past
    // when something waits that was due at once. Changes by insert(), cancel() and advance().
    [[nodiscard]] Instant next_due() const noexcept { return slots_.next_due(); }
    [[nodiscard]] bool contains(Handle handle) const noexcept { return slots_.holds(handle); }
    [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
    [[nodiscard]] std::size_t capacity() const noexcept { return entries_.size(); }
    // No time up to this long after the present is clamped.
    [[nodiscard]] Duration horizon() const noexcept { return kSlot * (std::int64_t{slots_.slots()} - 2); }
    [[nodiscard]] std::uint64_t clamped() const noexcept { return slots_.clamped(); }
    void check_invariants() const noexcept { slots_.check_invariants(); }

private:
    TimingWheelSlots slots_;
    std::vector<Entry> entries_;  // [capacity]
};

}  // namespace cairn::roce
