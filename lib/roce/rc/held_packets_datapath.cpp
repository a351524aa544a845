#include "lib/roce/rc/held_packets.hpp"

#include <algorithm>

#include "lib/base/assert.hpp"

namespace cairn::roce::rc {

bool HeldPackets::hold(Chain& chain, Psn psn, const PacketOffer& offer) noexcept {
    if (offer.bytes.empty() || free_ == kNone || chain.count_ >= slots_.size() - in_use_) {
        return false;
    }
    // Most packets come after all others.
    std::uint32_t before = chain.tail_;
    if (!chain.empty() && psn.since(slots_[before].psn) <= 0) {
        before = kNone;
        for (std::uint32_t at = chain.head_; psn.since(slots_[at].psn) >= 0; at = slots_[at].next) {
            if (slots_[at].psn == psn) {
                return false;
            }
            before = at;
        }
    }
    const std::uint32_t index = free_;
    Slot& slot = slots_[index];
    free_ = slot.next;
    slot.offer = offer;
    slot.psn = psn;
    std::uint32_t& link = before == kNone ? chain.head_ : slots_[before].next;
    slot.next = link;
    link = index;
    chain.tail_ = slot.next == kNone ? index : chain.tail_;
    ++chain.count_;
    ++in_use_;
    return true;
}

Psn HeldPackets::front_psn(const Chain& chain) const noexcept {
    CAIRN_ASSERT(!chain.empty());
    return slots_[chain.head_].psn;
}

Psn HeldPackets::back_psn(const Chain& chain) const noexcept {
    CAIRN_ASSERT(!chain.empty());
    return slots_[chain.tail_].psn;
}

std::span<const std::uint8_t> HeldPackets::front(const Chain& chain) const noexcept {
    CAIRN_ASSERT(!chain.empty());
    return slots_[chain.head_].offer.bytes;
}

void HeldPackets::release_front(Chain& chain) noexcept {
    CAIRN_ASSERT(!chain.empty());
    const std::uint32_t index = chain.head_;
    chain.head_ = slots_[index].next;
    chain.tail_ = chain.empty() ? kNone : chain.tail_;
    slots_[index].next = released_;
    released_ = index;
    --chain.count_;
    --in_use_;
}

void HeldPackets::release_all(Chain& chain) noexcept {
    while (!chain.empty()) {
        release_front(chain);
    }
}

std::size_t HeldPackets::map(const Chain& chain, Psn missing,
                             std::span<std::uint8_t, kHeldMapBytes> out) const noexcept {
    std::fill(out.begin(), out.end(), std::uint8_t{0});
    std::size_t bytes = 0;
    for (std::uint32_t at = chain.head_; at != kNone; at = slots_[at].next) {
        const auto bit = static_cast<std::uint32_t>(slots_[at].psn.since(missing) - 1);
        if (bit >= kHeldMapBytes * 8) {
            break;
        }
        out[bit / 8] = static_cast<std::uint8_t>(out[bit / 8] | 1U << bit % 8);
        bytes = bit / 32 * 4 + 4;
    }
    return bytes;
}

std::size_t HeldPackets::poll_released(std::span<void*> out) noexcept {
    std::size_t count = 0;
    while (count < out.size() && released_ != kNone) {
        const std::uint32_t index = released_;
        Slot& slot = slots_[index];
        out[count++] = slot.offer.cookie;
        released_ = slot.next;
        slot.next = free_;
        free_ = index;
    }
    return count;
}

}  // namespace cairn::roce::rc
