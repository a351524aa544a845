// Tickets: the numbers by which answers name calls, with the memory that calls lend until their answers come.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rpc/copyrpc/loans.hpp"
#include "rpc/copyrpc/session.hpp"

namespace cairn::copyrpc {

// A call that was put into a ring has a ticket until its answer comes, even if the call ends before. So its number is
// not used again meanwhile. A peer that never answers keeps tickets, and memory.
class Tickets {
public:
    struct Ticket {
        std::uint32_t call = rpc::kNone;      // kNone if the call has ended, or there is none
        std::uint32_t next = rpc::kNone;      // in the session's list, or in the free list
        std::uint32_t previous = rpc::kNone;  // in the session's list
        std::uint16_t charge = 0;             // 0 if the ticket is free
        SessionId session{};
        std::uint8_t generation = 0;
    };

    // Device and pool outlive the object.
    Tickets(std::uint32_t tickets, verbs::Device& device, rpc::MsgPool& pool);

    // Returns false if no ticket is free, and notes that a call waits for one.
    [[nodiscard]] bool any_free() noexcept {
        if (free_ == rpc::kNone) [[unlikely]] {
            lacks_ticket_ = awaited_ = true;
        }
        return free_ != rpc::kNone;
    }
    // Returns true once if a call waits for a ticket.
    [[nodiscard]] bool take_awaited() noexcept { return std::exchange(awaited_, false); }
    // Lends memory for the call that takes the next ticket. If there is none now, returns false, and notes that a call
    // waits for it.
    [[nodiscard]] bool lend(Session& session, std::span<const std::uint8_t> request, std::uint32_t answer_bytes);
    // Takes a free ticket, with the memory that was lent for it.
    std::uint32_t take(Session& session, std::uint32_t call, std::uint32_t charge) noexcept;
    // Returns the call's number on the wire.
    [[nodiscard]] std::uint32_t number_of(std::uint32_t ticket) const noexcept {
        return ticket | std::uint32_t{tickets_[ticket].generation} << kTicketBits;
    }
    // Returns the ticket that the session's peer names, or kNone if the session has no such ticket.
    [[nodiscard]] std::uint32_t find(const Session& session, std::uint32_t number) const noexcept;
    [[nodiscard]] const Ticket& operator[](std::uint32_t ticket) const noexcept { return tickets_[ticket]; }
    // Returns the loan of the ticket's call, or nullptr.
    [[nodiscard]] const Loan* loan_of(std::uint32_t ticket) const noexcept { return loans_[ticket].get(); }
    // Notes that the ticket's call has ended before its answer came.
    void give_up(Session& session, std::uint32_t ticket) noexcept;
    // Frees the ticket: the answer has come, or never will. Returns the call's loan, which ends with end().
    [[nodiscard]] std::unique_ptr<Loan> free(Session& session, std::uint32_t ticket) noexcept;
    void end(std::unique_ptr<Loan> loan) noexcept { lender_.end(std::move(loan)); }

    // Looks at a session of `sessions` from time to time. Returns true if calls wait for what the session's ended calls
    // hold, while its peer frees none of that. The session must hold at least the mean of all sessions.
    [[nodiscard]] bool is_held_up(Session& session, std::size_t sessions) const noexcept;
    // Ends a round of looks at all sessions.
    void end_look() noexcept { lacks_ticket_ = lacks_memory_ = false; }

private:
    static constexpr std::uint32_t kTicketBits = 24;  // in a call's number on the wire; 7 more bits are the generation
    static constexpr std::uint8_t kGenerations = 0x7f;
    static constexpr std::uint32_t kTicketMask = (1U << kTicketBits) - 1;
    static constexpr std::uint8_t kMostLooks = 16;  // as many as for a transfer that is held up

    std::vector<Ticket> tickets_;
    std::vector<std::unique_ptr<Loan>> loans_;  // by ticket; few have one
    Lender lender_;
    std::uint32_t free_ = rpc::kNone;
    GivenUp given_up_{};         // of all sessions together
    bool awaited_ = false;       // since take_awaited()
    bool lacks_ticket_ = false;  // a call has lacked a ticket since the last look
    bool lacks_memory_ = false;
};

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
