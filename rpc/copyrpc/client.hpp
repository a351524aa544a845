// The calling half of an endpoint: calls from post to completion, and the numbers by which answers name them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rpc/common/call_table.hpp"
#include "rpc/copyrpc/endpoint_config.hpp"
#include "rpc/copyrpc/loans.hpp"
#include "rpc/copyrpc/sessions.hpp"
#include "rpc/copyrpc/statistics.hpp"

namespace cairn::copyrpc {

// A call that was put into a ring has a ticket until its answer comes, even if the call has ended before: no other call
// has its number meanwhile.
class Client {
public:
    Client(const EndpointConfig& config, verbs::Device& device, Sessions& sessions, rpc::MsgPool& pool,
           Statistics& statistics);

    // Posts a call over a session that connects or is open. The call waits if there is no room for it.
    Posted post(Session& session, const Call& call, Instant now) noexcept;
    // Posts a call if it has room at once. See Endpoint.
    Tried try_post(Session& session, const Call& call, Instant now) noexcept;
    void set_room_callback(RoomCallback callback, void* context) noexcept {
        room_callback_ = callback;
        room_context_ = context;
    }
    // Tells that the last call that found no room has room now, if it has. The callback may end the session.
    void tell_room(Session& session) noexcept;
    bool cancel(CallId id) noexcept;
    // Puts calls that wait into the ring while they fit.
    void serve_backlog(Session& session, Instant now) noexcept;
    // The same, and ends those whose time is over instead. Completions may end the session.
    void serve_and_end_backlog(Session& session, Instant now) noexcept;
    // Returns nothing, or why the answer is none.
    [[nodiscard]] std::optional<Breach> on_answer(Session& session, const Message& answer, Instant now) noexcept;
    // Ends all calls of the session, whose state no longer takes calls. Returns true if some of them lent memory.
    bool fail_calls(Session& session, CallStatus status) noexcept;
    // Ends what calls of the session lend. Its peer answers none of them any more.
    void end_loans(const Session& session) noexcept;
    void end_overdue(Instant now) noexcept;
    void end_awaited() noexcept;
    // Calls wait for memory; nothing wakes the worker when there is some.
    [[nodiscard]] bool wants_polling() const noexcept { return wants_polling_; }
    void begin_turn() noexcept { wants_polling_ = false; }
    [[nodiscard]] Instant next_deadline() const noexcept { return calls_.next_deadline(); }
    [[nodiscard]] rpc::CallTable& calls() noexcept { return calls_; }
    [[nodiscard]] const rpc::CallTable& calls() const noexcept { return calls_; }

private:
    struct Ticket {
        std::uint32_t call = kNone;  // kNone: the call has ended, or there is none
        std::uint32_t next = kNone;  // of the free ones
        std::uint16_t charge = 0;    // 0: the ticket is free
        std::uint16_t session = 0;
        std::uint8_t generation = 0;
        Instant posted{};
    };
    [[nodiscard]] std::uint32_t answer_bytes(const Call& call) const noexcept;
    // What a call takes of the rings; whether its request, and its answer, travel by themselves.
    struct Plan {
        Wanted size{};
        Room room{};
        bool lends_request = false;
        bool lends_room = false;
    };
    [[nodiscard]] Plan plan_of(const Session& session, const Call& call, std::uint64_t trace) const noexcept;
    [[nodiscard]] static Room judge(const Session& session, const Wanted& size) noexcept;
    [[nodiscard]] bool is_beyond_limits(const Call& call) const noexcept;
    [[nodiscard]] bool is_head_over(const Session& session, Instant now) const noexcept {
        return !session.backlog.empty() && calls_[session.backlog.oldest].deadline <= now;
    }
    [[nodiscard]] bool lend(Session& session, const Call& call, const Plan& plan) noexcept;
    [[nodiscard]] std::uint32_t add(Session& session, const Call& call) noexcept;
    void put(Session& session, std::uint32_t call, const Plan& plan, Instant now) noexcept;
    [[nodiscard]] bool judge_written(const Message& answer, const Loan* loan) const noexcept;
    void free(std::uint32_t ticket) noexcept;
    void finish(std::uint32_t call, CallStatus status) noexcept;

    const EndpointConfig& config_;
    Sessions& sessions_;
    Statistics& statistics_;
    rpc::CallTable calls_;
    std::vector<Ticket> tickets_;
    Lender lender_;
    std::vector<std::unique_ptr<Loan>> loans_;  // by ticket; few have one
    std::vector<std::uint64_t> traces_;         // by call
    std::vector<std::uint32_t> ticket_of_;      // by call, while it is under way
    std::uint32_t free_ = kNone;
    bool wants_polling_ = false;
    RoomCallback room_callback_ = nullptr;
    void* room_context_ = nullptr;
};

}  // namespace cairn::copyrpc
