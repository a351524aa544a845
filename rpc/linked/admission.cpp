// Connections that peers ask for: who gets one, and who gives way.
#include <algorithm>

#include "rpc/linked/links.hpp"

namespace cairn::rpc {

namespace {

// A peer has the answer to its request, and has answered that, sooner than this, unless packets were lost.
constexpr Duration kTimeToAnswer = milliseconds(100);

// Returns the one of both that was asked for earlier.
// mutants: linked-links-earlier
LinkedSession* earlier(LinkedSession* one, LinkedSession& other) noexcept {
    return one == nullptr || other.asked < one->asked ? &other : one;
}

}  // namespace

// Returns the session that gives way to the newcomer's, or nullptr. The first to go have ended: their peers still owe a
// word, and may have been killed. Next is the accepted one that has waited longest for its peer's first word: a
// stranger need not be where its REQ says. A host that asks for more of these places than all others gives way itself:
// however fast it asks, the others have time to answer.
// mutants: linked-links-who-gives-way
LinkedSession* Links::who_gives_way(const net::IpAddress& newcomer, bool of_guests) {
    LinkedSession* ended = nullptr;
    net::IpAddress most = newcomer;  // the only one that can have more votes than all others
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

// Gives one connection up for another. Returns false if none gives way.
// mutants: linked-links-displace
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

// However many strangers come, the sessions that this end makes itself find room.
bool Links::has_room_for_guests() const noexcept {
    return sessions_ - ours_ + config_.own_sessions < config_.sessions_max;
}

// True if the host may have another session beside those that are open and `asked` of those that are not. Of the places
// of other sessions that are not open, each gives way to a peer that proves where it is.
// mutants: linked-links-may-hold-another
bool Links::may_hold_another(const net::IpAddress& host, std::size_t asked) const {
    if (config_.host_sessions_max != 0) {
        return shares_.held_by(host) + asked < config_.host_sessions_max;
    }
    const std::size_t taken = std::max<std::size_t>(config_.own_sessions, ours_) + guests_open_ + asked;
    return shares_.may_add(host, config_.sessions_max > taken ? config_.sessions_max - taken : 0, asked);
}

// True if the host may ask for another session. What it has just asked for counts: so it learns that its share is taken
// before a session opens. But anybody may ask in the name of a host. So nothing of that counts while all places are
// taken, or if some of it should have been answered by now.
// mutants: linked-links-may-ask
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

// mutants: linked-links-admit
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

// A peer that is refused learns why by the reason of the rejection.
// mutants: linked-links-on-requested
void Links::on_requested(const cm::Requested& requested, bool serves, Instant now) {
    if (!serves || !owner_.welcomes(requested.private_data) || !admit(requested, now)) {
        ++counters_.refused;
        (void)connector_.reject(requested.id, {}, now);
    }
}

}  // namespace cairn::rpc
