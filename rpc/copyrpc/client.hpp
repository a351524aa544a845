// The calling half of an endpoint: calls from post to completion.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rpc/common/call_table.hpp"
#include "rpc/copyrpc/endpoint_config.hpp"
#include "rpc/copyrpc/sessions.hpp"
#include "rpc/copyrpc/statistics.hpp"
#include "rpc/copyrpc/tickets.hpp"

namespace cairn::copyrpc {

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
    // If the last call that found no room has room now, notifies the caller. The callback may end the session.
    void tell_room(Session& session) noexcept;
    bool cancel(CallId id, Instant now) noexcept;
    // Puts waiting calls into the ring while they fit. Calls that wait for memory do not hold up the other calls.
    void serve_backlog(Session& session, Instant now) noexcept;
    // As serve_backlog(), and ends calls whose deadline has passed. Completions may end the session.
    void serve_and_end_backlog(Session& session, Instant now) noexcept;
    // Takes an answer. Returns the breach if the answer is invalid.
    [[nodiscard]] std::optional<Breach> on_answer(Session& session, const Message& answer, Instant now) noexcept;
    // Ends all calls of the session. The session takes no more calls. Returns true if some of its calls lent memory.
    bool fail_calls(Session& session, CallStatus status, Instant now) noexcept;
    // Frees what the session's calls hold. Its peer answers none of them any more.
    void end_tickets(Session& session) noexcept;
    void end_overdue(Instant now) noexcept;
    void end_awaited(Instant now) noexcept;
    // True if calls wait for memory: nothing wakes the worker when memory becomes free.
    [[nodiscard]] bool wants_polling() const noexcept { return wants_polling_; }
    void begin_turn() noexcept { wants_polling_ = false; }
    [[nodiscard]] Instant next_deadline() const noexcept { return calls_.next_deadline(); }
    [[nodiscard]] rpc::CallTable& calls() noexcept { return calls_; }
    [[nodiscard]] Tickets& tickets() noexcept { return tickets_; }
    [[nodiscard]] const rpc::CallTable& calls() const noexcept { return calls_; }

private:
    static constexpr std::uint32_t kLacksMemory = kNone - 1;

    [[nodiscard]] std::uint32_t answer_bytes(const Call& call) const noexcept;
    // The room that a call takes in the rings, and whether its request and its answer travel by themselves.
    struct Plan {
        Wanted size{};
        Room room{};
        bool lends_request = false;
        bool lends_room = false;

        [[nodiscard]] bool lends() const noexcept { return lends_request || lends_room; }
    };
    [[nodiscard]] Plan plan_of(const Session& session, const Call& call, std::uint64_t trace) const noexcept;
    [[nodiscard]] static Room judge(const Session& session, const Wanted& size) noexcept;
    [[nodiscard]] bool is_beyond_limits(const Call& call) const noexcept;
    [[nodiscard]] bool is_head_over(const Session& session, Instant now) const noexcept {
        return !session.backlog.empty() && calls_[session.backlog.oldest].deadline <= now;
    }
    [[nodiscard]] bool lend(Session& session, const Call& call, const Plan& plan) noexcept;
    void serve_lacking(Session& session, Instant now) noexcept;
    [[nodiscard]] std::uint32_t add(Session& session, const Call& call, Instant now) noexcept;
    void put(Session& session, std::uint32_t call, const Plan& plan, Instant now) noexcept;
    [[nodiscard]] std::unique_ptr<Loan> free(Session& session, std::uint32_t ticket) noexcept;
    void finish(std::uint32_t call, CallStatus status, Instant now) noexcept;

    const EndpointConfig& config_;
    Sessions& sessions_;
    Statistics& statistics_;
    rpc::CallTable calls_;
    Tickets tickets_;
    std::vector<std::uint64_t> traces_;     // by call
    std::vector<std::uint32_t> ticket_of_;  // by call, while it is under way; kLacksMemory: the call waits for memory
    bool wants_polling_ = false;
    RoomCallback room_callback_ = nullptr;
    void* room_context_ = nullptr;
};

}  // namespace cairn::copyrpc
