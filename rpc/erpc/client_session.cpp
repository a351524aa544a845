#include "rpc/erpc/client_session.hpp"

#include "lib/base/assert.hpp"

namespace cairn::erpc {

std::uint32_t ClientSession::check(std::uint16_t credits_max) const noexcept {
    std::uint32_t calls = 0;
    std::uint32_t held = 0;
    for (std::uint32_t i = 0; i < kSlotsPerSession; ++i) {
        const ClientSlot& slot = slots[i];
        CAIRN_ASSERT((slot.state == SlotState::Free) == (slot.call == kNone) && slot.index() == i);
        const bool transfers =
            slot.state == SlotState::Moving || slot.state == SlotState::Starved || slot.state == SlotState::HeldBack;
        CAIRN_ASSERT(transfers == (slot.transfer != nullptr));
        CAIRN_ASSERT(slot.awaited == SecondWord::none() ||
                     (slot.state == SlotState::Sent && slot.sends == 1 &&
                      slot.awaited == SecondWord::of(PacketType::Response, slot.request_number)));
        for (std::size_t state = 0; state < members.size(); ++state) {
            const bool member = ((std::uint32_t{members[state]} >> i) & 1U) != 0;
            CAIRN_ASSERT(member == (state == static_cast<std::size_t>(slot.state)));
        }
        held += slot.credits_held();
        calls += slot.call != kNone ? 1 : 0;
    }
    CAIRN_ASSERT(credits + held == credits_max);
    CAIRN_ASSERT(stalled() == 0 || stall != Stall::None);
    CAIRN_ASSERT(stall != Stall::Waits || credits == 0);  // otherwise its slots would never notice these credits
    return calls;
}

}  // namespace cairn::erpc
