// Tickets: the numbers by which answers name calls, and what calls lend until their answers come.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rpc/copyrpc/loans.hpp"
#include "rpc/copyrpc/session.hpp"

namespace cairn::copyrpc {

// A call that was put into a ring has a ticket until its answer comes, even if the call has ended before: no other call
// has its number meanwhile. So a peer that never answers keeps tickets, and memory.
class Tickets {
public:
    struct Ticket {
        std::uint32_t call = rpc::kNone;      // kNone: it has ended, or there is none
        std::uint32_t next = rpc::kNone;      // of its session's, or of the free ones
        std::uint32_t previous = rpc::kNone;  // of its session's
        std::uint16_t charge = 0;             // 0: the ticket is free
        SessionId session{};
        std::uint8_t generation = 0;
    };

    // Device and pool outlive the object.
    Tickets(std::uint32_t tickets, verbs::Device& device, rpc::MsgPool& pool);

    // Notes that a call waits for a ticket if none is free.
    [[nodiscard]] bool any_free() noexcept {
        if (free_ == rpc::kNone) [[unlikely]] {
            lacks_ticket_ = awaited_ = true;
        }
        return free_ != rpc::kNone;
    }
    // Returns true once if a call waits for a ticket.
    [[nodiscard]] bool take_awaited() noexcept { return std::exchange(awaited_, false); }
    // Lends memory for the call that takes the next ticket. Returns false if there is none now. Notes that a call waits
    // for it.
    [[nodiscard]] bool lend(Session& session, std::span<const std::uint8_t> request, std::uint32_t answer_bytes);
    // Takes a ticket, of which one is free, with what was lent for it.
    std::uint32_t take(Session& session, std::uint32_t call, std::uint32_t charge) noexcept;
    // The call's number on the wire.
    [[nodiscard]] std::uint32_t number_of(std::uint32_t ticket) const noexcept {
        return ticket | std::uint32_t{tickets_[ticket].generation} << kTicketBits;
    }
    // Returns the ticket that the session's peer names, or kNone if it is none of the session's.
    [[nodiscard]] std::uint32_t find(const Session& session, std::uint32_t number) const noexcept;
    [[nodiscard]] const Ticket& operator[](std::uint32_t ticket) const noexcept { return tickets_[ticket]; }
    // Returns what the ticket's call lent, or nullptr.
    [[nodiscard]] const Loan* loan_of(std::uint32_t ticket) const noexcept { return loans_[ticket].get(); }
    // The ticket's call has ended; its answer has not come.
    void give_up(Session& session, std::uint32_t ticket) noexcept;
    // The answer has come, or never will: frees the ticket. Returns what its call lent, which ends with end().
    [[nodiscard]] std::unique_ptr<Loan> free(Session& session, std::uint32_t ticket) noexcept;
    void end(std::unique_ptr<Loan> loan) noexcept { lender_.end(std::move(loan)); }

    // Looks at a session of `sessions` from time to time. Returns true if calls wait for what the session's given up
    // calls hold, which is not less than those of others, and its peer lets none of these go.
    [[nodiscard]] bool is_held_up(Session& session, std::size_t sessions) const noexcept;
    // All sessions were looked at.
    void end_look() noexcept { lacks_ticket_ = lacks_memory_ = false; }

private:
    static constexpr std::uint32_t kTicketBits = 24;  // of a call's number on the wire; 7 more are the generation
    static constexpr std::uint8_t kGenerations = 0x7f;
    static constexpr std::uint32_t kTicketMask = (1U << kTicketBits) - 1;
    static constexpr std::uint8_t kMostLooks = 16;  // as many as at a transfer that is held up

    std::vector<Ticket> tickets_;
    std::vector<std::unique_ptr<Loan>> loans_;  // by ticket; few have one
    Lender lender_;
    std::uint32_t free_ = rpc::kNone;
    GivenUp given_up_{};         // of all sessions
    bool awaited_ = false;       // since take_awaited()
    bool lacks_ticket_ = false;  // a call did, since the last look
    bool lacks_memory_ = false;
};

// mutants: copyrpc-tickets-free
inline std::unique_ptr<Loan> Tickets::free(Session& session, std::uint32_t index) noexcept {
    Outstanding& own = session.outstanding;
    Ticket& ticket = tickets_[index];
    const std::uint64_t bytes = loans_[index] != nullptr ? loans_[index]->bytes() : 0;
    if (ticket.call == rpc::kNone) [[unlikely]] {
        own.given_up.remove(bytes);
        given_up_.remove(bytes);
        own.still_looks = 0;
    }
    own.lent_bytes -= bytes;
    own.tickets.remove(tickets_, index);
    ticket.call = rpc::kNone;
    ticket.charge = 0;
    ticket.generation = (ticket.generation + 1U) & kGenerations;
    ticket.next = free_;
    free_ = index;
    return std::move(loans_[index]);
}

}  // namespace cairn::copyrpc
