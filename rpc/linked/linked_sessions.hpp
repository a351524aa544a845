// An endpoint's sessions, found by each of their names, and the lists of sessions that have something to do.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "rpc/linked/linked_session.hpp"
#include "rpc/linked/qpn_table.hpp"

namespace cairn::rpc {

// `Session` derives from LinkedSession. A session stays where it is until it is removed.
template <class Session>
class LinkedSessions {
public:
    explicit LinkedSessions(std::uint16_t sessions_max) : sessions_(sessions_max), by_qpn_(sessions_max) {
        for (std::uint16_t i = 0; i < sessions_max; ++i) {
            free_.emplace_back(i);
        }
        listed_.reserve(sessions_max);
        stalled_.reserve(sessions_max);
        written_.reserve(sessions_max);
    }

    // Returns a new session, or nullptr if all are in use. It gets the number that was free longest.
    [[nodiscard]] Session* add() {
        if (free_.empty()) {
            return nullptr;
        }
        const SessionId id = free_.front();
        free_.pop_front();
        std::unique_ptr<Session>& session = sessions_[id.number()];
        session = std::make_unique<Session>();
        session->id = id;
        return session.get();
    }
    void remove(Session& session) {
        if (session.qpn.value != 0) {  // the session was named
            by_qpn_.remove(session.qpn);
            by_connection_.erase(session.connection.value);
        }
        free_.push_back(session.id.successor());
        sessions_[session.id.number()].reset();
    }
    // Returns the session, or nullptr if there is none, or it has ended and another one has its number.
    [[nodiscard]] Session* find(SessionId id) const noexcept {
        Session* const session = id.number() < sessions_.size() ? sessions_[id.number()].get() : nullptr;
        return session != nullptr && session->id == id ? session : nullptr;
    }
    // Notes the session's queue pair and connection. The session is found by them from now on.
    void name(Session& session, verbs::ConnectionId connection) {
        session.connection = connection;
        session.qpn = session.qp->qpn();
        by_qpn_.add(session.qpn, session.id);
        by_connection_[connection.value] = &session;
    }
    [[nodiscard]] Session* of_qp(Qpn qpn) const noexcept {
        const std::uint32_t number = by_qpn_.find(qpn);
        return number == QpnTable::kNone ? nullptr : sessions_[number].get();
    }
    [[nodiscard]] Session* of_connection(verbs::ConnectionId id) const noexcept {
        const auto found = by_connection_.find(id.value);
        return found == by_connection_.end() ? nullptr : found->second;
    }
    [[nodiscard]] std::size_t count() const noexcept { return sessions_.size() - free_.size(); }
    template <class Do>
    void for_each(Do&& run) {
        for (const std::unique_ptr<Session>& session : sessions_) {
            if (session != nullptr) {
                run(*session);
            }
        }
    }

    // Puts the session into the list of sessions that have something to do, if it is not there.
    void list(Session& session) { listed_.add(session); }
    [[nodiscard]] bool any_listed() const noexcept { return !listed_.empty(); }
    // Puts the session into the list at the next relist_stalled(). Its send queue is full, and nothing leaves before
    // its peer has acknowledged something. So the session is tried in each turn, but causes no turn.
    void stall(Session& session) { stalled_.add(session); }
    void relist_stalled() {
        stalled_.take(*this, [this](Session& session) { list(session); });
    }
    // Takes all sessions of the list, in the order in which they came there. Sessions that run() lists come next time.
    template <class Run>
    void take_listed(Run&& run) {
        listed_.take(*this, run);
    }

    // Returns the sink that is notified of the peer's WRITEs on the session's queue pair: see take_written().
    [[nodiscard]] roce::EventSink* watch_writes(Session& session) {
        session.write_sink = std::make_unique<WriteSink>(*this, session);
        return session.write_sink.get();
    }
    // Puts the session among the sessions to look at, as if its peer had written.
    void note_written(Session& session) { written_.add(session); }
    // Takes the sessions whose peers wrote something since the last time, in that order.
    template <class Look>
    void take_written(Look&& look) {
        written_.take(*this, look);
    }

private:
    // A list that has each session once. The session's flag shows that it is there.
    template <bool LinkedSession::*kFlag>
    class List {
    public:
        void reserve(std::size_t sessions) {
            waiting_.reserve(sessions);
            taken_.reserve(sessions);
        }
        void add(Session& session) {
            if (!(session.*kFlag)) {
                session.*kFlag = true;
                waiting_.push_back(session.id);
            }
        }
        [[nodiscard]] bool empty() const noexcept { return waiting_.empty(); }
        template <class Run>
        void take(const LinkedSessions& all, Run&& run) {
            taken_.swap(waiting_);
            for (const SessionId id : taken_) {
                if (Session* const session = all.find(id); session != nullptr && session->*kFlag) {
                    session->*kFlag = false;
                    run(*session);
                }
            }
            taken_.clear();
        }

    private:
        std::vector<SessionId> waiting_;
        std::vector<SessionId> taken_;
    };
    class WriteSink final : public roce::EventSink {
    public:
        WriteSink(LinkedSessions& all, Session& session) noexcept : all_(all), session_(session) {}
        void on_event() noexcept override {
            all_.note_written(session_);
            session_.expect_look();
        }

    private:
        LinkedSessions& all_;
        Session& session_;
    };

    std::vector<std::unique_ptr<Session>> sessions_;
    std::deque<SessionId> free_;  // numbers of future sessions
    QpnTable by_qpn_;
    std::unordered_map<std::uint32_t, Session*> by_connection_;
    List<&LinkedSession::listed> listed_;
    List<&LinkedSession::stalled> stalled_;
    List<&LinkedSession::written> written_;
};

}  // namespace cairn::rpc
