// Connections that peers ask for: which of them are accepted, and which existing ones give way.
#include <algorithm>

#include "rpc/linked/links.hpp"

namespace cairn::rpc {

namespace {

// An honest peer confirms the connection within this time after its request, unless packets were lost.
constexpr Duration kTimeToAnswer = milliseconds(100);

// Returns the earlier of two requests' sessions.
LinkedSession* earlier(LinkedSession* one, LinkedSession& other) noexcept {
    return one == nullptr || other.asked < one->asked ? &other : one;
}

}  // namespace

// Returns the session that gives way to the newcomer's, or nullptr. The first to go are sessions that have ended: their
// peers still owe the last message, and may have been killed. Next is the accepted session that has waited longest for
// its peer's first message: the peer need not be at the address of its REQ. A host that asks for more of these places
// than all others together gives way itself. So however fast it asks, the others have time to answer.
LinkedSession* Links::who_gives_way(const net::IpAddress& newcomer, bool of_guests) {
    LinkedSession* ended = nullptr;
    net::IpAddress most = newcomer;  // the only host that can have more votes than all others together
    std::size_t votes = 1;
    std::size_t unproven = 1;
    owner_.for_each([&](LinkedSession& session) {
        if (session.state == LinkState::Ending && !(of_guests && session.ours)) {
            ended = &session;
        } else if (session.is_unproven()) {
            most = votes == 0 ? session.asker : most;
            votes = session.asker == most ? votes + 1 : votes - 1;
            ++unproven;
        }
    });
    if (ended != nullptr) {
        return ended;
    }
    LinkedSession* first = nullptr;
    LinkedSession* first_of_most = nullptr;
    std::size_t of_most = newcomer == most ? 1 : 0;
    owner_.for_each([&](LinkedSession& session) {
        if (session.is_unproven()) {
            first = earlier(first, session);
            first_of_most = session.asker == most ? earlier(first_of_most, session) : first_of_most;
            of_most += session.asker == most ? 1U : 0U;
        }
    });
    return first_of_most != nullptr && 2 * of_most > unproven ? first_of_most : first;
}

// Gives up one connection for another. Returns false if no session gives way.
bool Links::displace(const net::IpAddress& newcomer, bool of_guests, Instant now) {
    LinkedSession* const first = who_gives_way(newcomer, of_guests);
    if (first == nullptr) {
        return false;
    }
    counters_.displaced += first->state == LinkState::Ending ? 0 : 1;
    std::erase(left_, first->id);
    connector_.abandon(first->connection, now);
    remove(*first);
    return true;
}

// Keeps room for sessions that this end begins, however many peers connect.
bool Links::has_room_for_guests() const noexcept {
    return sessions_ - ours_ + config_.own_sessions < config_.sessions_max;
}

// True if the host may have another session, in addition to its open ones and to `asked` that are not open. Sessions of
// other hosts that are not open do not count: each gives way to a peer that proves its address.
bool Links::may_hold_another(const net::IpAddress& host, std::size_t asked) const {
    if (config_.host_sessions_max != 0) {
        return shares_.held_by(host) + asked < config_.host_sessions_max;
    }
    const std::size_t taken = std::max<std::size_t>(config_.own_sessions, ours_) + guests_open_ + asked;
    return shares_.may_add(host, config_.sessions_max > taken ? config_.sessions_max - taken : 0, asked);
}

// True if the host may ask for another session. Its unconfirmed requests count, so that it learns early that its share
// is taken. But any host may ask in the name of another. So these requests do not count while all places are taken.
// They do not count either if one of them should have been confirmed by now.
bool Links::may_ask(const net::IpAddress& host, bool has_room, Instant now) {
    if (!may_hold_another(host)) {
        return false;
    }
    if (!has_room || may_hold_another(host, asked_.held_by(host))) {
        return true;
    }
    bool any_late = false;
    owner_.for_each([&](const LinkedSession& session) {
        const bool is_of_host = session.is_unproven() && session.asker == host;
        any_late = any_late || (is_of_host && now - session.asked > kTimeToAnswer);
    });
    return any_late;
}

bool Links::admit(const cm::Requested& requested, Instant now) {
    const net::IpAddress asker = requested.route.remote.share_holder();
    const bool has_room = has_room_for_guests();
    if (!may_ask(asker, has_room, now) || (!has_room && !displace(asker, true, now))) {
        return false;
    }
    auto made = owner_.make(false);
    if (!made.ok() && has_room && displace(asker, false, now)) {
        made = owner_.make(false);
    }
    if (!made.ok()) {
        return false;
    }
    LinkedSession& session = *made.value();
    ++sessions_;
    session.asked = now;
    session.asker = asker;
    asked_.add(asker);
    if (!owner_.greet(session, requested.private_data) ||
        !connector_.accept(requested.id, *session.qp, choice_of(session), now).ok()) {
        remove(session);
        return false;
    }
    session.connection = requested.id;
    owner_.name(session);
    return true;
}

// Accepts or rejects a request. The rejection has the reason for the peer.
void Links::on_requested(const cm::Requested& requested, bool serves, Instant now) {
    if (!serves || !owner_.welcomes(requested.private_data) || !admit(requested, now)) {
        ++counters_.refused;
        (void)connector_.reject(requested.id, {}, now);
    }
}

}  // namespace cairn::rpc
