// Slots of congested sessions wait in the wheel for their flow's time, and go on when it has come.
#include <bit>

#include "rpc/erpc/client.hpp"

namespace cairn::erpc {

// Lets a slot wait that has something to send, while the flow's rate does not allow it yet.
void ClientTransfers::hold_back(Session& session, ClientSlot& slot) noexcept {
    ClientSession& client = *session.client;
    if (!client.in_wheel && !wheel_->insert({session.token, session.self.number()}, client.paid.at())) {
        client_.stall(session, slot, SlotState::Starved);  // the wheel is full: the slot tries again each turn
        return;
    }
    client.in_wheel = true;
    client.move(slot, SlotState::HeldBack);
}

void ClientTransfers::run_wheel(Instant now) noexcept {
    wheel_->advance(now, [this, now](const PacedSession& paced) {
        Session& session = client_.sessions_[SessionId{paced.session}];
        if (session.token == paced.token && session.client != nullptr && session.client->in_wheel) {  // else it ended
            session.client->in_wheel = false;
            serve_paced(session, now);
        }
    });
}

// The HeldBack slots send in turn what the rate allows. A slot that comes too late is held back again.
void ClientTransfers::serve_paced(Session& session, Instant now) noexcept {
    ClientSession& client = *session.client;
    const std::uint32_t turn = client.paced_turn;
    client.paced_turn = static_cast<std::uint8_t>((turn + 1) % kSlotsPerSession);
    std::uint8_t left = std::rotr(client.in(SlotState::HeldBack), static_cast<int>(turn));
    for (; left != 0; left = static_cast<std::uint8_t>(left & (left - 1U))) {
        kick(session, client.slots[(static_cast<std::uint32_t>(std::countr_zero(left)) + turn) % kSlotsPerSession],
             now);
    }
}

}  // namespace cairn::erpc
