// How connections are made, accepted and ended.
#include "rpc/linked/links.hpp"

#include <algorithm>
#include <variant>

namespace cairn::rpc {

namespace {

// All clients for which there is room may ask at once. If the backlog is full, a client asks again only after half a
// second.
constexpr std::uint32_t kLeastBacklog = 64;
// A peer that acknowledges nothing is lost after eight times 0.54 s; otherwise this end would wait for it without end.
// Receive requests are promised, so an honest peer is always ready.
constexpr std::uint8_t kLongestAckTimeout = 17;
constexpr std::uint8_t kMostRnrRetries = 6;
// Each waiting connection holds a path. A port has 4096 paths, and 3584 of them are for hosts that connect to it.
constexpr std::uint32_t kMostBacklog = 2048;

}  // namespace

Links::Links(const LinkConfig& config, verbs::Device& device, connections::Home& home, LinkOwner& owner,
             LinkCounters& counters)
    : config_(config), device_(device), connector_(device, home), owner_(owner), counters_(counters) {
    left_.reserve(config.sessions_max);
}

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

Status Links::listen(std::uint16_t port) {
    const std::uint32_t backlog = std::clamp<std::uint32_t>(config_.sessions_max, kLeastBacklog, kMostBacklog);
    return connector_.listen(port, backlog, connections::Sharing::Shared);
}

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

void Links::on_established(const cm::Established& established, Instant now) {
    LinkedSession* const session = owner_.of_connection(established.id);
    if (session == nullptr || session->state != LinkState::Connecting) {
        return;
    }
    // The host may have proved other sessions meanwhile.
    const bool shared = session->ours || may_hold_another(session->asker);
    const bool greeted = !session->ours || owner_.greet(*session, established.private_data);
    if (!shared || !greeted || !owner_.open(*session, now)) {
        on_ended(established.id, LinkEvent::Refused, shared ? counters_.rejected : counters_.refused, now);
        (void)connector_.disconnect(established.id, {}, now);
        return;
    }
    session->state = LinkState::Open;
    if (!session->ours) {
        asked_.remove(session->asker);
        shares_.add(session->asker);
        ++guests_open_;
    }
    ++counters_.opened;
    owner_.list(*session);
    tell(*session, LinkEvent::Connected);
}

// Hangs up. A connection that is not established has no end to await. Its session stays until the next turn, since its
// calls may be in use now.
void Links::hang_up(LinkedSession& session, Instant now) {
    if (!connector_.disconnect(session.connection, {}, now).ok()) {
        connector_.abandon(session.connection, now);
        left_.push_back(session.id);
        owner_.list(session);  // removed in another turn
    }
}

void Links::remove_left() {
    for (const SessionId id : left_) {
        remove(*owner_.find(id));
    }
    left_.clear();
}

// Ends the session's calls, and gives its place to others.
void Links::leave(LinkedSession& session) {
    if (session.is_unproven()) {
        asked_.remove(session.asker);
    } else if (session.is_open() && !session.ours) {
        shares_.remove(session.asker);
        --guests_open_;
    }
    session.state = LinkState::Ending;
}

void Links::remove(LinkedSession& session) {
    leave(session);
    --sessions_;
    ours_ -= session.ours ? 1U : 0U;
    owner_.remove(session);
}

// Ends a session whose connection's last event is still to come.
void Links::on_ended(verbs::ConnectionId id, LinkEvent event, telemetry::Counter& reason, Instant now) {
    LinkedSession* const session = owner_.of_connection(id);
    if (session == nullptr || session->state == LinkState::Ending) {
        return;
    }
    const bool was_told_of = session->ours || session->is_open();  // other peers may ask as often as they like
    leave(*session);
    ++reason;
    owner_.stop(*session, event == LinkEvent::PeerLost ? CallStatus::PeerLost : CallStatus::Disconnected, now);
    if (was_told_of) {
        tell(*session, event);
    }
}

// Ends a session whose peer never answered. Its memory is free at once, not when its connection's name and queue pair
// may be used again.
void Links::on_silent(verbs::ConnectionId id, Instant now) {
    on_ended(id, LinkEvent::PeerLost, counters_.unanswered, now);
    if (LinkedSession* const session = owner_.of_connection(id); session != nullptr) {
        hang_up(*session, now);
    }
}

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
    (void)session.qp->modify(verbs::QpState::Err);  // stops taking anything from the peer
    on_ended(session.connection, LinkEvent::PeerLost, counters_.peers_lost, now);
    hang_up(session, now);
}

}  // namespace cairn::rpc
