// Connections made, accepted and ended.
#include "rpc/linked/links.hpp"

#include <algorithm>
#include <variant>

namespace cairn::rpc {

namespace {

// All clients that there is room for may ask at once: who finds the backlog full asks again after half a second.
constexpr std::uint32_t kLeastBacklog = 64;
// A peer that acknowledges nothing, and would be waited for without end, is lost after eight times 0.54 s. Receive
// requests are promised: an honest peer is always ready.
constexpr std::uint8_t kLongestAckTimeout = 17;
constexpr std::uint8_t kMostRnrRetries = 6;
// Each that waits for its peer holds a path. A port has 4096 of them, and 3584 are for hosts that it did not ask for.
constexpr std::uint32_t kMostBacklog = 2048;

// Its peer asked, and has said nothing since.
// mutants: linked-links-is-unproven
bool is_unproven(const LinkedSession& session) noexcept {
    return session.state == LinkState::Connecting && !session.ours;
}

// Returns the one of both that was asked for earlier.
// mutants: linked-links-earlier
LinkedSession* earlier(LinkedSession* one, LinkedSession& other) noexcept {
    return one == nullptr || other.asked < one->asked ? &other : one;
}

}  // namespace

Links::Links(const LinkConfig& config, verbs::Device& device, connections::Home& home, LinkOwner& owner,
             LinkCounters& counters)
    : config_(config), device_(device), connector_(device, home), owner_(owner), counters_(counters) {
    left_.reserve(config.sessions_max);
}

// mutants: linked-links-take-no-more
void Links::take_no_more() {
    ended_ = true;
    owner_.for_each([](LinkedSession& session) { session.state = LinkState::Ending; });
}

void Links::end_all() {
    owner_.for_each([this](LinkedSession& session) {
        connector_.abandon(session.connection, device_.worker().now());
        remove(session);
    });
    left_.clear();
}

// mutants: linked-links-listen
Status Links::listen(std::uint16_t port) {
    const std::uint32_t backlog = std::clamp<std::uint32_t>(config_.sessions_max, kLeastBacklog, kMostBacklog);
    return connector_.listen(port, backlog, connections::Sharing::Shared);
}

// mutants: linked-links-choice-of
verbs::ConnectionChoice Links::choice_of(const LinkedSession& session) {
    verbs::ConnectionChoice choice;
    choice.access = config_.access;
    choice.ack_timeout_max = kLongestAckTimeout;
    choice.rnr_retry_max = kMostRnrRetries;
    choice.private_data = owner_.hello_of(session);
    return choice;
}

Result<SessionId> Links::connect(const net::IpAddress& remote, std::uint16_t port, Instant now) {
    if (ended_) {
        return Error{"the endpoint ends", "begin sessions before it is destroyed"};
    }
    auto made = owner_.make(true);
    if (!made.ok()) {
        return made.error();
    }
    LinkedSession& session = *made.value();
    session.ours = true;
    ++sessions_;
    ++ours_;
    verbs::ConnectTo to;
    to.remote = remote;
    to.port = port;
    to.path_mtu_bytes = config_.path_mtu_bytes;
    to.choice = choice_of(session);
    auto connection = connector_.connect(*session.qp, to, now);
    if (!connection.ok()) {
        const Error error = connection.error();
        remove(session);
        return error;
    }
    session.connection = connection.value();
    owner_.name(session);
    return session.id;
}

void Links::tell(const LinkedSession& session, LinkEvent event) const {
    const Listener& listener = session.ours ? own_ : guests_;
    if (listener.callback != nullptr) {
        listener.callback(listener.context, session.id, event);
    }
}

bool Links::poll_events(bool serves, Instant now) {
    remove_left();
    bool any = false;
    while (const std::optional<cm::Event> event = connector_.poll_event()) {
        any = true;
        if (const auto* requested = std::get_if<cm::Requested>(&*event)) {
            on_requested(*requested, serves, now);
        } else if (const auto* established = std::get_if<cm::Established>(&*event)) {
            on_established(*established, now);
        } else if (const auto* leaving = std::get_if<cm::DisconnectRequested>(&*event)) {
            on_ended(leaving->id, LinkEvent::Disconnected, counters_.ended_there, now);
            (void)connector_.disconnect(leaving->id, {}, now);
        } else if (const auto* gone = std::get_if<cm::Disconnected>(&*event)) {
            on_ended(gone->id, LinkEvent::Disconnected, counters_.ended_there, now);
        } else if (const auto* rejected = std::get_if<cm::Rejected>(&*event)) {
            on_ended(rejected->id, LinkEvent::Refused, counters_.rejected, now);
        } else if (const auto* silent = std::get_if<cm::Unreachable>(&*event)) {
            on_silent(silent->id, now);
        } else if (const auto* released = std::get_if<cm::Released>(&*event)) {
            if (LinkedSession* const session = owner_.of_connection(released->id); session != nullptr) {
                remove(*session);
            }
        }
    }
    return any;
}

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
        } else if (is_unproven(session)) {
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
        if (is_unproven(session)) {
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

// Of the places of sessions that are not open, each gives way to a peer that proves where it is. Peers that have only
// asked hold no share: whoever asks in the name of a host takes nothing from it.
// mutants: linked-links-may-hold-another
bool Links::may_hold_another(const net::IpAddress& host) const {
    if (config_.host_sessions_max != 0) {
        return shares_.held_by(host) < config_.host_sessions_max;
    }
    const std::size_t taken = std::max<std::size_t>(config_.own_sessions, ours_) + guests_open_;
    return shares_.may_add(host, config_.sessions_max > taken ? config_.sessions_max - taken : 0);
}

// mutants: linked-links-admit
bool Links::admit(const cm::Requested& requested, Instant now) {
    const net::IpAddress asker = requested.route.remote.share_holder();
    const bool has_room = has_room_for_guests();
    if (!may_hold_another(asker) || (!has_room && !displace(asker, true, now))) {
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

// mutants: linked-links-on-established
void Links::on_established(const cm::Established& established, Instant now) {
    LinkedSession* const session = owner_.of_connection(established.id);
    if (session == nullptr || session->state != LinkState::Connecting) {
        return;
    }
    // Its host may have proved others meanwhile.
    const bool shared = session->ours || may_hold_another(session->asker);
    const bool greeted = !session->ours || owner_.greet(*session, established.private_data);
    if (!shared || !greeted || !owner_.open(*session, now)) {
        on_ended(established.id, LinkEvent::Refused, shared ? counters_.rejected : counters_.refused, now);
        (void)connector_.disconnect(established.id, {}, now);
        return;
    }
    session->state = LinkState::Open;
    if (!session->ours) {
        shares_.add(session->asker);
        ++guests_open_;
    }
    ++counters_.opened;
    owner_.list(*session);
    tell(*session, LinkEvent::Connected);
}

// A connection that is not established has no end to be awaited. Its session stays until the next turn: somebody may be
// serving its calls.
// mutants: linked-links-hang-up
void Links::hang_up(LinkedSession& session, Instant now) {
    if (!connector_.disconnect(session.connection, {}, now).ok()) {
        connector_.abandon(session.connection, now);
        left_.push_back(session.id);
        owner_.list(session);  // for another turn
    }
}

void Links::remove_left() {
    for (const SessionId id : left_) {
        remove(*owner_.find(id));
    }
    left_.clear();
}

// The session takes no calls any more, and its place is for others.
// mutants: linked-links-leave
void Links::leave(LinkedSession& session) {
    if (session.is_open() && !session.ours) {
        shares_.remove(session.asker);
        --guests_open_;
    }
    session.state = LinkState::Ending;
}

// mutants: linked-links-remove
void Links::remove(LinkedSession& session) {
    leave(session);
    --sessions_;
    ours_ -= session.ours ? 1U : 0U;
    owner_.remove(session);
}

// Its last event is still to come.
// mutants: linked-links-on-ended
void Links::on_ended(verbs::ConnectionId id, LinkEvent event, telemetry::Counter& reason, Instant now) {
    LinkedSession* const session = owner_.of_connection(id);
    if (session == nullptr || session->state == LinkState::Ending) {
        return;
    }
    leave(*session);
    ++reason;
    owner_.stop(*session, event == LinkEvent::PeerLost ? CallStatus::PeerLost : CallStatus::Disconnected, now);
    tell(*session, event);
}

// Its peer never answered. What it holds is free at once, not when its connection's name and queue pair may come again.
// mutants: linked-links-on-silent
void Links::on_silent(verbs::ConnectionId id, Instant now) {
    on_ended(id, LinkEvent::PeerLost, counters_.unanswered, now);
    if (LinkedSession* const session = owner_.of_connection(id); session != nullptr) {
        hang_up(*session, now);
    }
}

// mutants: linked-links-end
void Links::end(LinkedSession& session, Instant now) {
    if (session.state != LinkState::Ending) {
        leave(session);
        ++counters_.ended_here;
        owner_.stop(session, CallStatus::Disconnected, now);
        hang_up(session, now);
    }
}

void Links::lose(LinkedSession& session, Instant now) {
    if (session.state == LinkState::Ending) {
        return;
    }
    (void)session.qp->modify(verbs::QpState::Err);  // nothing of the peer is taken any more
    on_ended(session.connection, LinkEvent::PeerLost, counters_.peers_lost, now);
    hang_up(session, now);
}

}  // namespace cairn::rpc
