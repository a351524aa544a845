#include "rpc/copyrpc/tickets.hpp"

#include <utility>

namespace cairn::copyrpc {

using rpc::kNone;

Tickets::Tickets(std::uint32_t tickets, verbs::Device& device, rpc::MsgPool& pool)
    : tickets_(tickets), loans_(tickets), lender_(device, pool) {
    for (std::uint32_t i = tickets; i-- > 0;) {
        tickets_[i].next = free_;
        free_ = i;
    }
}

bool Tickets::lend(Session& session, std::span<const std::uint8_t> request, std::uint32_t answer_bytes) {
    std::unique_ptr<Loan> loan = lender_.lend(*session.pd, session.outstanding.lent_bytes, request, answer_bytes);
    if (loan == nullptr) {
        lacks_memory_ = true;
        return false;
    }
    session.outstanding.lent_bytes += loan->bytes();
    loans_[free_] = std::move(loan);
    return true;
}

std::uint32_t Tickets::take(Session& session, std::uint32_t call, std::uint32_t charge) noexcept {
    const std::uint32_t index = free_;
    Ticket& ticket = tickets_[index];
    free_ = ticket.next;
    ticket.call = call;
    ticket.charge = static_cast<std::uint16_t>(charge);
    ticket.session = session.id;
    session.outstanding.tickets.add(tickets_, index);
    return index;
}

std::uint32_t Tickets::find(const Session& session, std::uint32_t number) const noexcept {
    const std::uint32_t index = number & kTicketMask;
    if (index >= tickets_.size()) {
        return kNone;
    }
    const Ticket& ticket = tickets_[index];
    const bool is_its = ticket.charge != 0 && ticket.session == session.id;
    return is_its && ticket.generation == number >> kTicketBits ? index : kNone;
}

void Tickets::give_up(Session& session, std::uint32_t index) noexcept {
    const std::uint64_t bytes = loans_[index] != nullptr ? loans_[index]->bytes() : 0;
    tickets_[index].call = kNone;
    session.outstanding.given_up.add(bytes);
    given_up_.add(bytes);
}

bool Tickets::is_held_up(Session& session, std::size_t sessions) const noexcept {
    Outstanding& own = session.outstanding;
    const GivenUp& held = own.given_up;
    const bool keeps_memory = held.bytes != 0 && held.bytes * sessions >= given_up_.bytes;
    const bool keeps_tickets = held.tickets != 0 && held.tickets * sessions >= given_up_.tickets;
    // Calls that wait for a ticket do not ask again until one is free.
    const bool awaits_ticket = lacks_ticket_ || awaited_;
    const bool is_waited_for = (lacks_memory_ && keeps_memory) || (awaits_ticket && keeps_tickets);
    own.still_looks = is_waited_for ? static_cast<std::uint8_t>(own.still_looks + 1) : std::uint8_t{0};
    return own.still_looks >= kMostLooks;
}

}  // namespace cairn::copyrpc
