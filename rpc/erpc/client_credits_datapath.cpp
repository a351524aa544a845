// Which slots send when a session's credits are scarce: slots that wait for a credit, and requests that give theirs up.
#include <algorithm>
#include <bit>

#include "rpc/erpc/client.hpp"

namespace cairn::erpc {

void Client::stall(Session& session, ClientSlot& slot, SlotState as) noexcept {
    session.client->move(slot, as);
    stalled_.join(session);
}

void Client::serve_stall_queue(Instant now) noexcept {
    stalled_.serve(sessions_, [this, now](Session& session) { serve_stalled(session, 0, now); });
}

// Each waiting slot gets one chance while there are credits, and may have to wait on. Slots for which the server holds
// memory go first, since the others may wait for that very memory. Either group begins with the slot `first`.
// mutants: erpc-client-serve-stalled
void Client::serve_stalled(Session& session, std::uint32_t first, Instant now) noexcept {
    ClientSession& client = *session.client;
    const std::uint8_t under_way = client.stalled_under_way();
    const auto others = static_cast<std::uint8_t>(client.stalled() & ~under_way);
    for (const std::uint8_t waiting : {under_way, others}) {
        std::uint8_t left = std::rotr(waiting, static_cast<int>(first));
        for (; left != 0 && client.credits != 0; left = static_cast<std::uint8_t>(left & (left - 1U))) {
            const auto place = static_cast<std::uint32_t>(std::countr_zero(left));
            ClientSlot& slot = client.slots[(place + first) % kSlotsPerSession];
            if (slot.transfer != nullptr) {
                transfers_.kick(session, slot, now);
            } else {
                send_first(session, slot, now);
            }
        }
    }
}

// The server may have put the request off for want of memory. Slots that wait here for a credit may hold that memory,
// so the request gives its credit to them.
void Client::on_request_timeout(Session& session, ClientSlot& slot, Instant now) noexcept {
    ClientSession& client = *session.client;
    if (client.stalled_under_way() == 0) [[likely]] {
        ++statistics_.retransmits;
        send_request(session, slot, now);
        return;
    }
    slot.sends = std::max<std::uint8_t>(slot.sends, 2);  // its answer may be to a copy
    ++client.credits;
    stall(session, slot, SlotState::Yielded);
    serve_stalled(session, slot.index() + 1, now);  // this slot comes last
}

}  // namespace cairn::erpc
