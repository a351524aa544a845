// Slots of congested sessions that wait for their flow's time: into the wheel, and on when it has come.
#include <bit>

#include "rpc/erpc/endpoint.hpp"

namespace cairn::erpc {

// The slot has something to send and its flow may not yet.
void Endpoint::hold_back(Session& session, std::uint32_t slot_index) noexcept {
    if (!session.in_wheel && !wheel_->insert({session.token, session.self.value}, session.paid.at())) {
        stall(session, slot_index);  // no room: it is tried with each burst
        return;
    }
    session.in_wheel = true;
    session.paced_slots = static_cast<std::uint8_t>(session.paced_slots | (1U << slot_index));
}

void Endpoint::run_wheel(Instant now) noexcept {
    wheel_->advance(now, [this, now](const PacedSession& paced) {
        Session& session = sessions_[paced.session];
        if (session.token == paced.token && session.in_wheel) {  // else it has ended
            session.in_wheel = false;
            serve_paced(session, now);
        }
    });
}

// Each in turn sends what the rate allows; who comes too late for that is held back again.
void Endpoint::serve_paced(Session& session, Instant now) noexcept {
    std::uint8_t left = std::rotr(session.paced_slots, session.paced_turn);
    session.paced_slots = 0;
    const std::uint32_t turn = session.paced_turn;
    session.paced_turn = static_cast<std::uint8_t>((turn + 1) % kSlotsPerSession);
    for (; left != 0 && session.client_slots != nullptr; left = static_cast<std::uint8_t>(left & (left - 1U))) {
        const std::uint32_t slot_index = (static_cast<std::uint32_t>(std::countr_zero(left)) + turn) % kSlotsPerSession;
        if ((*session.client_slots)[slot_index].transfer != nullptr) {  // else its call is over
            kick(session, slot_index, now);
        }
    }
}

}  // namespace cairn::erpc
