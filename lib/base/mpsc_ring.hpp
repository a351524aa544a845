// A bounded ring with many writers and one reader, without locks. Each slot has the position whose turn it is (D.
// Vyukov's bounded queue, with one consumer).
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "lib/base/assert.hpp"

namespace cairn {

// Keeps the order of each thread's pushes. Allocates only in the constructor.
template <class Value>
class MpscRing {
public:
    // Makes an empty ring. `slots` is a power of two, at least 2 (asserted).
    explicit MpscRing(std::uint32_t slots) : mask_(slots - 1), ring_(slots) {
        CAIRN_ASSERT(slots >= 2 && (slots & mask_) == 0);
        for (std::uint32_t i = 0; i < slots; ++i) {
            ring_[i].turn.store(i, std::memory_order_relaxed);
        }
    }
    MpscRing(const MpscRing&) = delete;
    MpscRing& operator=(const MpscRing&) = delete;

    // Pushes a value, which `fill` writes into its slot. Returns false if the ring is full. Any thread may call it.
    template <class Fill>
    [[nodiscard]] bool push(Fill&& fill) noexcept {
        std::uint32_t position = tail_.load(std::memory_order_relaxed);
        for (;;) {
            Slot& slot = ring_[position & mask_];
            // Pairs with the release in pop(): the consumer has finished with the slot.
            const auto ahead = static_cast<std::int32_t>(slot.turn.load(std::memory_order_acquire) - position);
            if (ahead < 0) {
                return false;
            }
            if (ahead > 0) {
                position = tail_.load(std::memory_order_relaxed);
            } else if (tail_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
                fill(slot.value);
                slot.turn.store(position + 1, std::memory_order_release);  // pairs with the acquire in pop()
                return true;
            }
        }
    }
    // Passes the oldest value to `take`, which returns true if the value is used up. The value stays in the ring
    // otherwise. Returns false if the ring is empty or the value stays. One thread only.
    template <class Take>
    [[nodiscard]] bool pop(Take&& take) noexcept {
        Slot& slot = ring_[head_ & mask_];
        if (empty() || !take(slot.value)) {
            return false;
        }
        slot.turn.store(head_ + mask_ + 1, std::memory_order_release);
        ++head_;
        return true;
    }

    // Returns true if pop() would find nothing. Only the thread that pops may call it.
    [[nodiscard]] bool empty() const noexcept {
        return ring_[head_ & mask_].turn.load(std::memory_order_acquire) != head_ + 1;
    }

private:
    struct Slot {
        std::atomic<std::uint32_t> turn{0};  // equal to the position: free; one more: filled
        Value value{};
    };

    const std::uint32_t mask_;
    std::vector<Slot> ring_;
    alignas(64) std::atomic<std::uint32_t> tail_{0};  // positions wrap at 2^32
    alignas(64) std::uint32_t head_ = 0;
};

}  // namespace cairn
