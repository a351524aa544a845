// Packets that came too early: they stay in their port's buffers until the packets before them have come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/types.hpp"
#include "lib/roce/rc/limits.hpp"

namespace cairn::roce::rc {

// A packet whose buffer the port may leave to us.
struct PacketOffer {
    std::span<const std::uint8_t> bytes{};  // BTH ... ICRC; empty: the port needs the buffer back
    void* cookie = nullptr;                 // the port's name for the buffer
};

// The pool of all queue pairs of one worker, which bounds the number of buffers that peers can make it hold. One queue
// pair may hold as many as are left for the others. Alone it gets half of all, and a few peers cannot take everything
// from peers that come later. Used by one thread; allocates only when made.
class HeldPackets {
public:
    // The packets of one queue pair, in the order of PSNs.
    class Chain {
    public:
        [[nodiscard]] bool empty() const noexcept { return head_ == kNone; }

    private:
        friend HeldPackets;
        std::uint32_t head_ = kNone;
        std::uint32_t tail_ = kNone;
        std::uint32_t count_ = 0;
    };

    // Makes a pool. `slots` is in [1, 2^20] (asserted).
    explicit HeldPackets(std::uint32_t slots);

    // Keeps a packet. Returns false if the chain may not hold more, or holds this PSN already; the buffer stays the
    // port's.
    [[nodiscard]] bool hold(Chain& chain, Psn psn, const PacketOffer& offer) noexcept;
    // Returns the oldest or the newest PSN of the chain, which is not empty (asserted).
    [[nodiscard]] Psn front_psn(const Chain& chain) const noexcept;
    [[nodiscard]] Psn back_psn(const Chain& chain) const noexcept;
    [[nodiscard]] std::span<const std::uint8_t> front(const Chain& chain) const noexcept;
    void release_front(Chain& chain) noexcept;
    void release_all(Chain& chain) noexcept;
    // Writes the map of the PSNs after `missing` that are held. Bit i of the map is missing + 1 + i, the low bits of a
    // byte first. Returns the length of the map in bytes, a multiple of 4.
    [[nodiscard]] std::size_t map(const Chain& chain, Psn missing,
                                  std::span<std::uint8_t, kHeldMapBytes> out) const noexcept;

    [[nodiscard]] bool any_released() const noexcept { return released_ != kNone; }
    // Writes the cookies of buffers that go back to the port. Returns their number.
    [[nodiscard]] std::size_t poll_released(std::span<void*> out) noexcept;
    [[nodiscard]] std::uint32_t in_use() const noexcept { return in_use_; }  // without buffers that wait to be polled

private:
    static constexpr std::uint32_t kNone = ~std::uint32_t{0};
    struct Slot {
        PacketOffer offer{};
        Psn psn{};
        std::uint32_t next = kNone;
    };

    std::vector<Slot> slots_;
    std::uint32_t free_ = 0;          // the first of a list linked by `next`
    std::uint32_t released_ = kNone;  // the first of another such list
    std::uint32_t in_use_ = 0;
};

}  // namespace cairn::roce::rc
