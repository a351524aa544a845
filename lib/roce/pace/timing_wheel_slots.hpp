// The slots of a timing wheel, without the contents of its entries.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "lib/base/assert.hpp"
#include "lib/base/time.hpp"

namespace cairn::roce {

constexpr Duration kSlot = nanoseconds(500);                 // as in eRPC
constexpr Duration kTimingWheelHorizonMax = seconds(1);      // 2^21 slots, 16 MiB
constexpr std::uint32_t kTimingWheelCapacityMax = 1U << 30;  // entries

// Names one entry until it is handed out or cancelled. After that it names nothing, until the place was used 2^32 times
// more. The default names nothing.
struct TimingWheelHandle {
    std::uint32_t node = 0;
    std::uint32_t generation = 0;
    constexpr explicit operator bool() const noexcept { return node != 0; }
};

// Nodes in lists, one list per slot. Only TimingWheel uses it.
class TimingWheelSlots {
public:
    TimingWheelSlots(Duration horizon, std::uint32_t capacity, Instant now);

    // Returns a node in the slot of `when`, or 0 if all are in use.
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
    // Moves all nodes due at `now` to the list of due nodes, by slot and within a slot by age.
    void collect_due(Instant now) noexcept {
        CAIRN_ASSERT(links_[slots_].next == slots_);
        // In most turns the time is in the slot of the turn before.
        const std::uint32_t list = list_of(cursor_);
        if (now.ns < (cursor_ + 1) * kSlot.ns && (occupied_[list / 64] >> (list % 64) & 1U) == 0) [[likely]] {
            return;
        }
        const std::int64_t target = std::max(slot_at_or_before(now), cursor_);
        if (size_ != 0) {
            gather(static_cast<std::uint32_t>(std::min<std::int64_t>(target - cursor_ + 1, slots_)));
        }
        cursor_ = target;
    }
    // Returns the first due node, or 0. The node is free again; its number stays valid to read the entry by.
    [[nodiscard]] std::uint32_t pop_due() noexcept {
        const std::uint32_t node = links_[slots_].next;
        if (node == slots_) {
            return 0;
        }
        remove(node);
        return node;
    }
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
    // Slots are numbered from the epoch. The numbers are bounded far from it, so that no sum of them overflows.
    static constexpr std::int64_t kSlotMax = std::numeric_limits<std::int64_t>::max() / kSlot.ns - (1LL << 32);
    static std::int64_t slot_at_or_before(Instant when) noexcept {
        return std::clamp(when.ns / kSlot.ns - (when.ns % kSlot.ns < 0 ? 1 : 0), -kSlotMax, kSlotMax);
    }
    static std::int64_t slot_at_or_after(Instant when) noexcept {
        return when.ns / kSlot.ns + (when.ns % kSlot.ns > 0 ? 1 : 0);
    }
    [[nodiscard]] std::uint32_t list_of(std::int64_t slot) const noexcept {
        return static_cast<std::uint32_t>(slot) & (slots_ - 1);
    }
    // Returns how many slots from list `from` on are empty, at most `limit`.
    [[nodiscard]] std::uint32_t empty_from(std::uint32_t from, std::uint32_t limit) const noexcept;
    // Collects from the `count` slots that begin at the cursor.
    void gather(std::uint32_t count) noexcept;

    // Lists are circles through a node of their own. Nodes 0 to slots_ - 1 belong to the slots, node slots_ to the list
    // of due nodes; the others are entries.
    struct Link {
        std::uint32_t next;
        std::uint32_t prev;
    };
    std::int64_t cursor_;                     // the current slot, of the latest `now`
    std::uint32_t slots_;                     // a power of two, at least 64
    std::uint32_t size_ = 0;                  // nodes in lists
    std::uint32_t free_;                      // first free node, linked by `next`; 0: none
    std::uint64_t clamped_ = 0;               // inserted beyond the last slot
    std::vector<Link> links_;                 // [slots_ + 1 + capacity]
    std::vector<std::uint64_t> occupied_;     // [slots_ / 64], a bit per slot that is not empty
    std::vector<std::uint32_t> generations_;  // [capacity], counts the uses of each node
};

}  // namespace cairn::roce
