// Calls that wait for room in the ring, for a ticket, or for memory.
#include <utility>

#include "rpc/copyrpc/client.hpp"

namespace cairn::copyrpc {

void Client::tell_room(Session& session) noexcept {
    if (session.wanted && session.backlog.empty() && judge(session, *session.wanted) == Room::Fits) {
        session.wanted.reset();
        if (room_callback_ != nullptr) {
            room_callback_(room_context_, session.id);
        }
    }
}

// A waiting call may be too long: the peer's ring was not known when it was posted. A call with a passed deadline never
// leaves.
void Client::serve_backlog(Session& session, Instant now) noexcept {
    serve_lacking(session, now);
    while (!session.backlog.empty() && !is_head_over(session, now)) {
        const std::uint32_t call = session.backlog.oldest;
        const Plan plan = plan_of(session, calls_[call], traces_[call]);
        if (plan.room != Room::Fits && plan.room != Room::TooLong) {
            return;
        }
        if (!tickets_.any_free()) {
            return;
        }
        calls_.leave(session.backlog, call);
        if (plan.room == Room::TooLong) {
            calls_.finish(call, CallStatus::RequestTooLong, {}, now);
            if (!session.is_open()) {
                return;
            }
        } else if (plan.lends() && (!session.lacking.empty() || !lend(session, calls_[call], plan))) {
            ticket_of_[call] = kLacksMemory;
            calls_.join(session.lacking, call);
            wants_polling_ = true;
            sessions_.stall(session);
        } else {
            put(session, call, plan, now);
        }
    }
}

// Serves calls that wait for memory, in their order. Nothing wakes the worker when memory becomes free.
void Client::serve_lacking(Session& session, Instant now) noexcept {
    while (!session.lacking.empty() && tickets_.any_free()) {
        const std::uint32_t call = session.lacking.oldest;
        const Plan plan = plan_of(session, calls_[call], traces_[call]);
        if (plan.room != Room::Fits) {
            return;
        }
        if (calls_[call].deadline <= now || !lend(session, calls_[call], plan)) {
            wants_polling_ = true;
            sessions_.stall(session);
            return;
        }
        calls_.leave(session.lacking, call);
        put(session, call, plan, now);
    }
}

// Ends at most as many calls as wait now. A completion may post its call anew, again with a passed deadline.
void Client::serve_and_end_backlog(Session& session, Instant now) noexcept {
    serve_backlog(session, now);
    for (std::uint32_t left = calls_.size_of(session.backlog);
         left != 0 && session.is_open() && is_head_over(session, now); --left) {
        finish(session.backlog.oldest, CallStatus::DeadlinePassed, now);
        if (session.is_open()) {
            serve_backlog(session, now);
        }
    }
}

// Lends the memory that the call with the next ticket needs, if any. Returns false if there is no memory now.
bool Client::lend(Session& session, const Call& call, const Plan& plan) noexcept {
    return tickets_.lend(session, plan.lends_request ? call.request : std::span<const std::uint8_t>{},
                         plan.lends_room ? answer_bytes(call) : 0);
}

}  // namespace cairn::copyrpc
