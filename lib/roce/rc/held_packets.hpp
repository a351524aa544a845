// Packets that came before others: they stay in their port's buffers until what is missing is here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/types.hpp"
#include "lib/roce/rc/limits.hpp"

namespace cairn::roce::rc {

// A packet whose buffer the port would leave to us.
struct PacketOffer {
    std::span<const std::uint8_t> bytes{};  // BTH ... ICRC; empty: it would not
    void* cookie = nullptr;                 // the port's name for the buffer
};

// Of one worker's queue pairs together, which bounds what their peers can make it hold. Each may hold as much as is
// left for the others: half of all when it is alone, and few peers can not leave nothing to those that come later. One
// thread; allocates only when made.
class HeldPackets {
public:
    // Those of one queue pair, in the order of PSNs.
    class Chain {
    public:
        [[nodiscard]] bool empty() const noexcept { return head_ == kNone; }

    private:
        friend HeldPackets;
        std::uint32_t head_ = kNone;
        std::uint32_t tail_ = kNone;
        std::uint32_t count_ = 0;
    };

    // `slots` is in [1, 2^20] (asserted).
    explicit HeldPackets(std::uint32_t slots);

    // False: there is no room left for this chain, or the PSN is held already; the buffer stays the port's.
    [[nodiscard]] bool hold(Chain& chain, Psn psn, const PacketOffer& offer) noexcept;
    // The oldest and the newest of the chain, which is not empty (asserted).
    [[nodiscard]] Psn front_psn(const Chain& chain) const noexcept;
    [[nodiscard]] Psn back_psn(const Chain& chain) const noexcept;
    [[nodiscard]] std::span<const std::uint8_t> front(const Chain& chain) const noexcept;
    void release_front(Chain& chain) noexcept;
    void release_all(Chain& chain) noexcept;
    // Writes which PSNs behind `missing` are held: bit i of the map is missing + 1 + i, the low bits of a byte first.
    // Returns how many bytes say it, a multiple of 4.
    [[nodiscard]] std::size_t map(const Chain& chain, Psn missing,
                                  std::span<std::uint8_t, kHeldMapBytes> out) const noexcept;

    // Buffers that the port has back; returns how many cookies were written.
    [[nodiscard]] std::size_t poll_released(std::span<void*> out) noexcept;
    [[nodiscard]] std::uint32_t in_use() const noexcept { return in_use_; }  // those to be polled not counted

private:
    static constexpr std::uint32_t kNone = ~std::uint32_t{0};
    struct Slot {
        PacketOffer offer{};
        Psn psn{};
        std::uint32_t next = kNone;
    };

    std::vector<Slot> slots_;
    std::uint32_t free_ = 0;          // the first of a list by `next`
    std::uint32_t released_ = kNone;  // likewise
    std::uint32_t in_use_ = 0;
};

}  // namespace cairn::roce::rc
