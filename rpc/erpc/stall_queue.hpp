// The sessions with slots that wait for credits which have come.
#pragma once

#include <cstddef>
#include <vector>

#include "rpc/erpc/session_table.hpp"

namespace cairn::erpc {

// A session without credits is not in the queue, so it costs a turn nothing. All sessions have a client part.
class StallQueue {
public:
    explicit StallQueue(std::size_t sessions_max) { queue_.reserve(sessions_max); }

    // Notes that a slot of the session waits for a credit.
    void join(Session& session) noexcept {
        if (session.client->stall == Stall::None) {
            session.client->stall = Stall::Waits;
            ++waiting_;
        }
        if (session.client->credits != 0) {
            list(session);
        }
    }
    // Notes that the session got credits back.
    void credits_came(Session& session) noexcept {
        if (session.client->stall == Stall::Waits) [[unlikely]] {
            list(session);
        }
    }
    void forget(Session& session) noexcept {
        waiting_ -= session.client->stall != Stall::None ? 1U : 0U;
        session.client->stall = Stall::None;
        std::erase(queue_, session.self);
    }
    [[nodiscard]] bool empty() const noexcept { return queue_.empty(); }
    // True if slots of any session may wait.
    [[nodiscard]] bool any_waits() const noexcept { return waiting_ != 0; }

    // Calls `serve` with each session, oldest first. Sessions that still have credits and waiting slots stay in the
    // queue.
    template <class Serve>
    void serve(SessionTable& sessions, Serve&& serve) noexcept {
        const std::size_t waiting = queue_.size();
        for (std::size_t i = 0; i < waiting; ++i) {
            serve(sessions[queue_[i]]);
        }
        std::erase_if(queue_, [this, &sessions](SessionId id) {
            ClientSession& client = *sessions[id].client;
            const Stall still = client.credits != 0 ? Stall::Listed : Stall::Waits;
            client.stall = client.stalled() != 0 ? still : Stall::None;
            waiting_ -= client.stall == Stall::None ? 1U : 0U;
            return client.stall != Stall::Listed;
        });
    }

private:
    void list(Session& session) noexcept {
        if (session.client->stall != Stall::Listed) {
            session.client->stall = Stall::Listed;
            queue_.push_back(session.self);  // never grows: it has room for every session
        }
    }

    std::vector<SessionId> queue_;  // sessions that are Stall::Listed
    std::size_t waiting_ = 0;       // sessions that are not Stall::None
};

}  // namespace cairn::erpc
