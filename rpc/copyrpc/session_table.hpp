// The sessions of an endpoint, by each of their names, and those that have something to send.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "rpc/copyrpc/session.hpp"

namespace cairn::copyrpc {

// A Session stays where it is until it is removed.
class SessionTable {
public:
    explicit SessionTable(std::uint16_t sessions_max);

    // Returns a new session, or nullptr if all are in use. The number that was free longest is taken.
    [[nodiscard]] Session* add();
    void remove(Session& session);
    // Returns the session, or nullptr if there is none.
    [[nodiscard]] Session* find(SessionId id) const noexcept {
        return id.value < sessions_.size() ? sessions_[id.value].get() : nullptr;
    }
    // Notes the session's queue pair and connection, by which it is found from now on.
    void name(Session& session, verbs::ConnectionId connection);
    // Before the session's queue pair is destroyed: nobody finds the session by it, or by its connection, any more.
    void forget_names(const Session& session);
    [[nodiscard]] Session* of_qp(Qpn qpn) const noexcept;
    [[nodiscard]] Session* of_connection(verbs::ConnectionId id) const noexcept;
    [[nodiscard]] std::size_t count() const noexcept { return sessions_.size() - free_.size(); }
    template <class Do>
    void for_each(Do&& run) {
        for (const std::unique_ptr<Session>& session : sessions_) {
            if (session != nullptr) {
                run(*session);
            }
        }
    }

    // Puts the session into the list of those that have something to send, if it is not there.
    void list(Session& session) {
        if (!session.listed) {
            session.listed = true;
            listed_.push_back(session.id);
        }
    }
    [[nodiscard]] bool any_listed() const noexcept { return !listed_.empty(); }
    // Puts the session into the list once relist_stalled() is called: nothing leaves before its peer has acknowledged
    // something.
    void stall(Session& session) { stalled_.push_back(session.id); }
    void relist_stalled() {
        for (const SessionId id : stalled_) {
            if (Session* const session = find(id); session != nullptr) {
                list(*session);
            }
        }
        stalled_.clear();
    }
    // Takes all of the list, in the order in which they came there. Those that run() lists come next time.
    template <class Run>
    void take_listed(Run&& run) {
        taken_.swap(listed_);
        for (const SessionId id : taken_) {
            if (Session* const session = find(id); session != nullptr && session->listed) {
                session->listed = false;
                run(*session);
            }
        }
        taken_.clear();
    }

private:
    std::vector<std::unique_ptr<Session>> sessions_;
    std::deque<std::uint16_t> free_;
    std::unordered_map<std::uint32_t, Session*> by_qpn_;
    std::unordered_map<std::uint32_t, Session*> by_connection_;
    std::vector<SessionId> listed_;
    std::vector<SessionId> taken_;
    std::vector<SessionId> stalled_;
};

}  // namespace cairn::copyrpc
