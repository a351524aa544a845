// Chooses which slots send when a session's credits are scarce. Some slots wait for a credit, and some requests give
// theirs up.
#include <algorithm>
#include <bit>

#include "rpc/erpc/client.hpp"

namespace cairn::erpc {

void Client::stall(Session& session, ClientSlot& slot, SlotState as) noexcept {
    session.client->move(slot, as);
    stalled_.join(session);
}

void Client::serve_stall_queue(Instant now) noexcept {
    stalled_.serve(sessions_, [this, now](Session& session) { serve_stalled(session, now); });
}

// Gives each waiting slot one chance while there are credits. A slot may have to wait on. Slots for which the server
// holds memory go first, since the others may wait for that very memory. Either group begins after the slot that got a
// credit last. Otherwise one slot would go on alone, and the server would give up the messages that the others have
// read in part.
void Client::serve_stalled(Session& session, Instant now) noexcept {
    ClientSession& client = *session.client;
    const std::uint32_t first = client.credit_turn;
    const std::uint8_t under_way = client.stalled_under_way();
    const auto others = static_cast<std::uint8_t>(client.stalled() & ~under_way);
    for (const std::uint8_t waiting : {under_way, others}) {
        std::uint8_t left = std::rotr(waiting, static_cast<int>(first));
        for (; left != 0 && client.credits != 0; left = static_cast<std::uint8_t>(left & (left - 1U))) {
            const auto place = static_cast<std::uint32_t>(std::countr_zero(left));
            ClientSlot& slot = client.slots[(place + first) % kSlotsPerSession];
            const std::uint16_t credits = client.credits;
            if (slot.transfer != nullptr) {
                transfers_.kick(session, slot, now);
            } else {
                send_first(session, slot, now);
            }
            if (client.credits != credits) {
                client.comes_last(slot);
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
    client.comes_last(slot);
    serve_stalled(session, now);
}

}  // namespace cairn::erpc
