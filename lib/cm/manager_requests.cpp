// Admits requests of peers, and chooses the request that gives way to another.
#include "lib/cm/manager.hpp"
#include "lib/cm/messages.hpp"
#include "lib/cm/timeouts.hpp"

namespace cairn::cm {

namespace {

// Returns true if the connection was made from `req`.
bool is_same_request(const Connection& connection, const wire::Req& req, std::uint64_t transaction) noexcept {
    return !connection.active && connection.remote_qpn == req.local_qpn && connection.send_psn == req.starting_psn &&
           connection.transaction == transaction;
}

std::size_t most_strangers(const Config& config) noexcept {
    constexpr std::uint32_t kMostStrangers = 8192;
    return std::max(1U, std::min(kMostStrangers, config.max_connections / 2));
}

}  // namespace

void Manager::receive(const Incoming& in, const wire::Req& req) {
    Connection* known = table_.find_remote(in.route.remote, req.local_comm_id);
    if (known != nullptr && known->route == in.route && is_same_request(*known, req, in.transaction)) {
        (void)apply(*known, Message::Req, in.now);
        return;
    }
    if (known == nullptr) {
        known = table_.find_remote_qpn(in.route.remote, req.local_qpn);
    }
    if (known == nullptr) {
        admit(in, req);
        return;
    }
    counters_.count(Counter::Stale);
    if (!known->proven) {  // unclear which request is the sender's: the first one is answered or ends
        return;
    }
    // The peer is in a new life and uses a name or a queue pair of a connection of an earlier life (12.9.8.3.1).
    refuse(in, {req.local_comm_id, {}}, wire::Answered::Req, wire::RejectReason::StaleConnection);
    ask_whether_it_lives(*known);
}

void Manager::admit(const Incoming& in, const wire::Req& req) {
    const wire::CommIds ids{req.local_comm_id, {}};
    if (const std::optional<wire::RejectReason> reason = judge_req(req, in.route)) {
        counters_.count(Counter::BadRequest);
        refuse(in, ids, wire::Answered::Req, *reason);
        return;
    }
    Listener* const listener = listeners_.find(req.service_id, in.route.local);
    if (listener == nullptr) {
        counters_.count(Counter::NoListener);
        refuse(in, ids, wire::Answered::Req, wire::RejectReason::InvalidServiceId);
        return;
    }
    if (!make_room(in, *listener)) {
        counters_.count(Counter::BacklogFull);
        return;
    }
    add_request(in, req, *listener);
}

bool Manager::make_room(const Incoming& in, Listener& listener) {
    if (strangers_.size() >= most_strangers(config_)) {
        const std::optional<ConnectionId> last = who_gives_way(strangers_, in);
        if (!last) {
            return false;
        }
        give_way(*table_.find(*last), in.now);
        if (Connection* const left = find_live(*last)) {
            finish(*left);
        }
    }
    if (listener.waiting.size() < listener.backlog) {
        return true;
    }
    const std::optional<ConnectionId> last = who_gives_way(listener.waiting, in);
    if (last) {
        give_way(*table_.find(*last), in.now);
    }
    return last.has_value();
}

// Chooses the request that gives way. An ended connection keeps its place until its events were polled.
std::optional<ConnectionId> Manager::who_gives_way(const ConnectionShares& shares, const Incoming& in) {
    const std::optional<ConnectionId> fair = shares.who_gives_way_to(in.route.remote);
    const std::optional<ConnectionId> last = fair ? fair : shares.first_to_go();
    if (!last) {
        return std::nullopt;
    }
    const Connection& connection = *table_.find(*last);
    const bool had_time = connection.state == State::TimeWait ||
                          (connection.state == State::RepSent && in.now >= connection.replied_at + kTimeToAnswer);
    return (fair && connection.state != State::Ended) || had_time ? last : std::nullopt;
}

void Manager::give_way(Connection& connection, Instant now) {
    counters_.count(Counter::GaveWay);
    if (connection.state == State::RepSent || connection.state == State::MraRepRcvd) {
        give_up(connection, now);
        return;
    }
    if (connection.state != State::TimeWait) {
        emit(connection, Rejected{connection.id, wire::RejectReason::NoResources, false});
    }
    leave_backlog(connection);
    finish(connection);
}

void Manager::add_request(const Incoming& in, const wire::Req& req, Listener& listener) {
    Connection* const connection = table_.try_add();
    if (connection == nullptr) {
        counters_.count(Counter::TableFull);
        refuse(in, {req.local_comm_id, {}}, wire::Answered::Req, wire::RejectReason::NoResources);
        return;
    }
    connection->state = State::ReqRcvd;
    connection->user = listener.user;
    connection->has_alternate = req.alternate != wire::CmPath{};
    connection->route = in.route;
    connection->remote_id = req.local_comm_id;
    connection->has_remote = true;
    connection->transport = req.service;
    connection->remote_qpn = req.local_qpn;
    connection->send_psn = req.starting_psn;
    connection->transaction = in.transaction;
    connection->responder_resources = req.responder_resources;
    connection->initiator_depth = req.initiator_depth;
    connection->wait = response_wait(config_, req.local_response_timeout);
    connection->ack_timeout = req.primary.ack_timeout;
    connection->max_retries = std::min(req.max_cm_retries, config_.max_retries);
    connection->allowance = kMostPerRequest;
    const bool anywhere = listeners_.find_exactly(req.service_id, in.route.local) == nullptr;
    connection->place = {req.service_id, anywhere ? net::IpAddress{} : in.route.local, listener.serial,
                         listener.waiting.add(in.route.remote, connection->id)};
    connection->stranger_ticket = strangers_.add(in.route.remote, connection->id);
    table_.add_remote(*connection);
    arm(*connection, in.now + half_of(req.remote_response_timeout));
    const ReceivedData data = read_private_data(req);
    emit(*connection,
         Requested{connection->id, req.service_id, in.route, parameters_of(req), data.features, data.ip, data.rest});
}

// The message that makes the peer seem to have forgotten the connection may be forged. So the peer is asked by a DREQ
// for queue pair 0, which no connection has. Only a peer without such a connection confirms that; a peer that has the
// connection ignores it.
void Manager::ask_whether_it_lives(const Connection& connection) {
    if (connection.state == State::Established) {
        wire::Dreq dreq;
        dreq.ids = {connection.id, connection.remote_id};
        outbox_.push(connection.route, numbers_.next(), dreq);
    }
}

}  // namespace cairn::cm
