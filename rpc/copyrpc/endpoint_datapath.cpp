// A turn of an endpoint.
#include <algorithm>

#include "rpc/copyrpc/endpoint.hpp"

namespace cairn::copyrpc {

namespace {

constexpr Duration kPollInterval = microseconds(50);

}  // namespace

bool Endpoint::on_turn(Instant now) noexcept {
    const auto inside = guard_.enter();
    bool worked = links_->poll_events(serves(), now);
    worked = exchange_->take(now) || worked;
    server_.jobs().on_turn(now);
    next_poll_ = now + kPollInterval;
    client_.end_overdue(now);
    look_for_silent(now);
    if (config_.watch != nullptr) [[unlikely]] {
        config_.watch->on_taken();
    }
    return exchange_->flush(now) || worked;
}

void Endpoint::look_for_silent(Instant now) noexcept {
    if (probes_.is_due(now)) {
        sessions_.for_each([this, now](Session& session) {
            const bool is_held_up = client_.tickets().is_held_up(session, sessions_.count());
            statistics_.never_answering += is_held_up ? 1 : 0;
            if (rpc::Probes::is_lost(session, session.peer.rkey, session.peer.address) ||
                Transfers::is_stuck(session) || OneSided::is_stuck(session) || is_held_up) {
                links_->lose(session, now);
            }
        });
        client_.tickets().end_look();
    }
}

Instant Endpoint::next_deadline() const noexcept {
    if (sessions_.any_listed()) {
        return Instant{};
    }
    const bool polls = server_.wants_polling() || one_sided_.wants_polling() || client_.wants_polling();
    const Instant due = std::min(polls ? next_poll_ : client_.next_deadline(), exchange_->next_deadline());
    return sessions_.count() == 0 ? due : std::min(due, probes_.next_look());
}

}  // namespace cairn::copyrpc
