#include "rpc/erpc/session_table.hpp"

namespace cairn::erpc {

SessionTable::SessionTable(std::uint32_t sessions_max)
    : capacity_(sessions_max), sessions_(std::make_unique<Session[]>(sessions_max)) {
    for (std::uint32_t i = sessions_max; i-- > 0;) {
        sessions_[i].self = SessionId{static_cast<std::uint16_t>(i)};
        free_.push_back(static_cast<std::uint16_t>(i));
    }
    open_.reserve(sessions_max);
}

SessionTable::~SessionTable() {
    for (const std::uint16_t number : open_) {
        sessions_[number].peer.path->unpin();
    }
}

Session* SessionTable::open(const roce::UdAddress& peer, std::uint64_t token, Instant now) {
    if (free_.empty()) {
        return nullptr;
    }
    Session& session = sessions_[free_.back()];
    free_.pop_back();
    const SessionId self = session.self;
    session = Session{};
    session.self = self;
    session.peer = peer;
    session.token = token;
    session.last_heard = session.opened = now;
    peer.path->pin();
    session.place = static_cast<std::uint16_t>(open_.size());
    open_.push_back(self.number());
    return &session;
}

void SessionTable::close(Session& session) noexcept {
    session.state = SessionState::Free;
    session.client.reset();
    session.server.reset();
    session.peer.path->unpin();
    free_.push_back(session.self.number());
    session.self = session.self.successor();
    sessions_[open_.back()].place = session.place;
    open_[session.place] = open_.back();
    open_.pop_back();
}

}  // namespace cairn::erpc
