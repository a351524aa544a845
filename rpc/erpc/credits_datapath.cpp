// Who sends when a session's credits are scarce: slots that wait for one, and requests that give theirs up.
#include <algorithm>
#include <bit>

#include "rpc/erpc/endpoint.hpp"

namespace cairn::erpc {

void Endpoint::stall(Session& session, std::uint32_t slot_index) noexcept {
    session.stalled_slots = static_cast<std::uint8_t>(session.stalled_slots | (1U << slot_index));
    if (!session.in_stall_queue) {
        session.in_stall_queue = true;
        stall_queue_.push_back(session.self.value);  // reserved for every session: never grows
    }
}

void Endpoint::serve_stall_queue(Instant now) noexcept {
    std::size_t waiting = stall_queue_.size();
    for (std::size_t i = 0; i < waiting; ++i) {
        serve_stalled(sessions_[stall_queue_[i]], 0, now);
    }
    std::erase_if(stall_queue_, [this](std::uint32_t index) {
        sessions_[index].in_stall_queue = sessions_[index].stalled_slots != 0;
        return !sessions_[index].in_stall_queue;
    });
}

// Each slot that waits gets one chance, as long as there are credits; it may have to wait on. Those for which the
// server holds memory go first, from `first` on: the others may wait for that very memory.
void Endpoint::serve_stalled(Session& session, std::uint32_t first, Instant now) noexcept {
    const std::uint8_t under_way = session.stalled_under_way();
    const auto others = static_cast<std::uint8_t>(session.stalled_slots & ~under_way);
    for (const std::uint8_t waiting : {under_way, others}) {
        std::uint8_t left = std::rotr(waiting, static_cast<int>(first));
        for (; left != 0 && session.credits != 0; left = static_cast<std::uint8_t>(left & (left - 1U))) {
            const auto place = static_cast<std::uint32_t>(std::countr_zero(left));
            const std::uint32_t slot_index = (place + first) % kSlotsPerSession;
            session.end_stall(slot_index);
            if ((*session.client_slots)[slot_index].transfer != nullptr) {
                kick(session, slot_index, now);
            } else {
                send_first(session, slot_index, now);
            }
        }
    }
}

// The server may have put the request off for want of the memory that the answers hold which wait here for a credit.
void Endpoint::on_request_timeout(Session& session, ClientSlot& slot, Instant now) noexcept {
    if (session.stalled_under_way() == 0) [[likely]] {
        sent_slots_.remove(slot);
        ++statistics_.retransmits;
        send_request(session, slot.index(), now);
        return;
    }
    slot.sends = std::max<std::uint8_t>(slot.sends, 2);  // its answer is to a copy, perhaps
    ++session.credits;
    stall(session, slot.index());
    session.yielded_slots = static_cast<std::uint8_t>(session.yielded_slots | (1U << slot.index()));
    serve_stalled(session, slot.index() + 1, now);  // itself last
}

}  // namespace cairn::erpc
