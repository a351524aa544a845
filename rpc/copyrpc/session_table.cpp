// Sessions added, named and removed.
#include "rpc/copyrpc/session_table.hpp"

namespace cairn::copyrpc {

SessionTable::SessionTable(std::uint16_t sessions_max) : sessions_(sessions_max) {
    for (std::uint16_t i = 0; i < sessions_max; ++i) {
        free_.push_back(i);
    }
    listed_.reserve(sessions_max);
    taken_.reserve(sessions_max);
    stalled_.reserve(sessions_max);
}

Session* SessionTable::add() {
    if (free_.empty()) {
        return nullptr;
    }
    const std::uint16_t number = free_.front();
    free_.pop_front();
    sessions_[number] = std::make_unique<Session>();
    sessions_[number]->id = SessionId{number};
    return sessions_[number].get();
}

void SessionTable::remove(Session& session) {
    free_.push_back(session.id.value);
    sessions_[session.id.value].reset();
}

void SessionTable::forget_names(const Session& session) {
    if (session.qp != nullptr) {
        by_qpn_.erase(session.qp->qpn().value);
    }
    by_connection_.erase(session.connection.value);
}

void SessionTable::name(Session& session, verbs::ConnectionId connection) {
    session.connection = connection;
    by_qpn_[session.qp->qpn().value] = &session;
    by_connection_[connection.value] = &session;
}

Session* SessionTable::of_qp(Qpn qpn) const noexcept {
    const auto found = by_qpn_.find(qpn.value);
    return found == by_qpn_.end() ? nullptr : found->second;
}

Session* SessionTable::of_connection(verbs::ConnectionId id) const noexcept {
    const auto found = by_connection_.find(id.value);
    return found == by_connection_.end() ? nullptr : found->second;
}

}  // namespace cairn::copyrpc
