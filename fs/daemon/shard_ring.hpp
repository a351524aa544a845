// ShardRing: messages from one thread to another, in memory of a fixed size.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>

#include "lib/base/assert.hpp"

namespace cairn::fs {

// One thread puts, and one takes. Each message lies whole, after its length. If it has no room before the memory's end,
// it lies at the beginning.
class ShardRing {
public:
    static constexpr std::uint32_t kBytes = 32U << 10U;
    static constexpr std::uint32_t kMostMessageBytes = 4096;

    ShardRing() = default;
    ShardRing(const ShardRing&) = delete;
    ShardRing& operator=(const ShardRing&) = delete;

    // Puts a message of at most kMostMessageBytes (asserted). Returns false if there is no room. For the thread that
    // puts.
    [[nodiscard]] bool put(std::span<const std::uint8_t> message) noexcept {
        const auto bytes = static_cast<std::uint32_t>(message.size());
        if (!has_room(bytes)) {
            return false;
        }
        std::uint32_t at = tail_.load(std::memory_order_relaxed);
        if (room_of(bytes) > kBytes - at % kBytes) {
            put_length(at, kSkip);
            at += kBytes - at % kBytes;
        }
        put_length(at, bytes);
        if (bytes != 0) {
            std::memcpy(bytes_.data() + at % kBytes + sizeof(bytes), message.data(), bytes);
        }
        tail_.store(at + room_of(bytes), std::memory_order_release);  // pairs with the acquire in take()
        return true;
    }
    [[nodiscard]] bool has_room(std::size_t bytes) const noexcept {
        CAIRN_ASSERT(bytes <= kMostMessageBytes);
        const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
        const std::uint32_t room = room_of(static_cast<std::uint32_t>(bytes));
        const std::uint32_t to_end = kBytes - tail % kBytes;
        // Pairs with the release in take(): the bytes there have been read.
        const std::uint32_t used = tail - head_.load(std::memory_order_acquire);
        return used + room + (room > to_end ? to_end : 0) <= kBytes;
    }
    // Notes that the thread that puts waits for room. Called before it looks a last time, and sleeps.
    void begin_wait() noexcept { waits_.exchange(true, std::memory_order_acq_rel); }

    // Hands out all messages that were there at the beginning, oldest first. For the thread that takes.
    template <class Sink>
    void take(const Sink& sink) {
        const std::uint32_t tail = tail_.load(std::memory_order_acquire);
        std::uint32_t at = head_.load(std::memory_order_relaxed);
        while (at != tail) {
            std::uint32_t bytes = 0;
            std::memcpy(&bytes, bytes_.data() + at % kBytes, sizeof(bytes));
            if (bytes == kSkip) {
                at += kBytes - at % kBytes;
                continue;
            }
            sink(std::span<const std::uint8_t>(bytes_).subspan(at % kBytes + sizeof(bytes), bytes));
            at += room_of(bytes);
        }
        head_.store(at, std::memory_order_release);
    }
    [[nodiscard]] bool empty() const noexcept {
        return tail_.load(std::memory_order_acquire) == head_.load(std::memory_order_relaxed);
    }
    // Returns true if the thread that puts has to be woken. Called after take(). Pairs with begin_wait(): the later of
    // the two exchanges sees the other one. So either the room is seen, or the waiting thread.
    [[nodiscard]] bool must_wake() noexcept { return waits_.exchange(false, std::memory_order_acq_rel); }

private:
    static constexpr std::uint32_t kSkip = ~0U;  // in place of a length: the next message is at the beginning

    static constexpr std::uint32_t room_of(std::uint32_t bytes) noexcept {
        return (static_cast<std::uint32_t>(sizeof(bytes)) + bytes + 7U) & ~7U;
    }
    void put_length(std::uint32_t at, std::uint32_t bytes) noexcept {
        std::memcpy(bytes_.data() + at % kBytes, &bytes, sizeof(bytes));
    }
    static_assert(2 * (kMostMessageBytes + 16) <= kBytes);  // any message has room in an empty ring

    alignas(64) std::atomic<std::uint32_t> tail_{0};  // positions wrap at 2^32, a multiple of kBytes
    alignas(64) std::atomic<std::uint32_t> head_{0};
    alignas(64) std::atomic<bool> waits_{false};
    alignas(64) std::array<std::uint8_t, kBytes> bytes_;  // no byte is read before it was written
};

}  // namespace cairn::fs
