// Carries out the calls of users.
#include "lib/cm/manager.hpp"
#include "lib/cm/messages.hpp"
#include "lib/cm/timeouts.hpp"

namespace cairn::cm {

namespace {

bool is_request_waiting(const Connection& connection) noexcept {
    return connection.state == State::ReqRcvd || connection.state == State::MraReqSent;
}

bool is_reply_waiting(const Connection& connection) noexcept {
    return connection.state == State::RepRcvd || connection.state == State::MraRepSent;
}

bool is_reply_sent(const Connection& connection) noexcept {
    return connection.state == State::RepSent || connection.state == State::MraRepRcvd;
}

template <class Sent>
bool fits(std::span<const std::uint8_t> private_data) noexcept {
    return private_data.size() <= Sent{}.private_data.size();
}

}  // namespace

std::optional<CallRefusal> Manager::listen(wire::ServiceId service, std::uint32_t backlog, const net::IpAddress& local,
                                           User* user) {
    if (backlog == 0) {
        return CallRefusal::BadParameters;
    }
    const bool added = listeners_.try_add(service, local, Listener{last_listener_ + 1, backlog, user});
    last_listener_ += added ? 1U : 0U;
    return added ? std::nullopt : std::optional(CallRefusal::ServiceTaken);
}

std::optional<CallRefusal> Manager::unlisten(wire::ServiceId service, const net::IpAddress& local) {
    return listeners_.remove(service, local) ? std::nullopt : std::optional(CallRefusal::UnknownService);
}

Parsed<ConnectionId, CallRefusal> Manager::connect(const ConnectRequest& request, Instant now, User* user) {
    if (const std::optional<CallRefusal> refusal = judge_connect(request)) {
        return *refusal;
    }
    Connection* const connection = table_.try_add();
    if (connection == nullptr) {
        return CallRefusal::NoRoom;
    }
    connection->state = State::ReqSent;
    connection->active = true;
    connection->user = user;
    connection->transport = request.transport;
    connection->route = request.route;
    connection->local_qpn = request.qpn;
    connection->transaction = numbers_.next();
    connection->wait = response_wait(config_, config_.response_timeout);
    connection->max_retries = config_.max_retries;
    connection->ack_timeout = ack_timeout_of(config_.packet_lifetime, config_.ack_delay);
    send(*connection, connection->transaction, make_req(config_, request, connection->id), std::nullopt);
    wait_for_answer(*connection, now);
    return connection->id;
}

std::optional<CallRefusal> Manager::ready(ConnectionId id, std::span<const std::uint8_t> private_data, Instant now) {
    Connection* const connection = find_live(id);
    if (connection == nullptr) {
        return CallRefusal::UnknownConnection;
    }
    if (!is_reply_waiting(*connection)) {
        return CallRefusal::WrongState;
    }
    if (!fits<wire::Rtu>(private_data)) {
        return CallRefusal::PrivateDataTooLong;
    }
    wire::Rtu rtu;
    rtu.ids = {connection->id, connection->remote_id};
    std::copy(private_data.begin(), private_data.end(), rtu.private_data.begin());
    establish(*connection);
    send(*connection, connection->transaction, rtu, Message::Rep);
    connection->retries_left = kReadyCopies;
    arm(*connection, now + connection->wait);
    return std::nullopt;
}

std::optional<CallRefusal> Manager::accept(ConnectionId id, const AcceptParameters& accepted, Instant now) {
    Connection* const connection = find_live(id);
    if (connection == nullptr) {
        return CallRefusal::UnknownConnection;
    }
    if (!is_request_waiting(*connection)) {
        return CallRefusal::WrongState;
    }
    if (accepted.private_data.size() > private_room(accepted)) {
        return CallRefusal::PrivateDataTooLong;
    }
    connection->local_qpn = accepted.qpn;
    send(*connection, connection->transaction, make_rep(config_, *connection, accepted), Message::Req);
    connection->state = State::RepSent;
    connection->replied_at = now;
    wait_for_answer(*connection, now);
    return std::nullopt;
}

std::optional<CallRefusal> Manager::established(ConnectionId id) {
    Connection* const connection = find_live(id);
    if (connection == nullptr) {
        return CallRefusal::UnknownConnection;
    }
    if (!is_reply_sent(*connection)) {
        return CallRefusal::WrongState;
    }
    establish(*connection);
    connection->answers.reset();
    return std::nullopt;
}

std::optional<CallRefusal> Manager::reject(ConnectionId id, const Refusal& refusal, Instant now) {
    Connection* const connection = find_live(id);
    if (connection == nullptr) {
        return CallRefusal::UnknownConnection;
    }
    if (!fits<wire::Rej>(refusal.private_data) || refusal.info.size() > wire::kInfoBytes) {
        return CallRefusal::PrivateDataTooLong;
    }
    if (is_request_waiting(*connection) || is_reply_sent(*connection)) {
        reject_request(*connection, refusal, now);
        return std::nullopt;
    }
    if (!is_reply_waiting(*connection)) {
        return CallRefusal::WrongState;
    }
    enter_time_wait(*connection, now);
    send(*connection, connection->transaction, make_rej(*connection, refusal, wire::Answered::Rep), Message::Rep);
    return std::nullopt;
}

// Keeps the refusal for copies of the request, for as long as its sender may wait before it asks again.
void Manager::reject_request(Connection& connection, const Refusal& refusal, Instant now) {
    const wire::Rej of_request = make_rej(connection, refusal, wire::Answered::Req);
    const bool replied = is_reply_sent(connection);
    enter_time_wait(connection, now, connection.wait * 2 + connection.service);
    send(connection, connection.transaction, of_request, Message::Req);
    if (replied) {  // the peer may know the reply by now: it is taken back
        const wire::CmMad of_reply{connection.transaction, make_rej(connection, refusal, wire::Answered::Other)};
        transmit(connection, of_reply.bytes());
    } else {
        connection.abandoned = true;
    }
}

std::optional<CallRefusal> Manager::ask_for_time(ConnectionId id, wire::CmTimeout service_timeout,
                                                 std::span<const std::uint8_t> private_data) {
    Connection* const connection = find_live(id);
    if (connection == nullptr) {
        return CallRefusal::UnknownConnection;
    }
    if (!is_request_waiting(*connection) && !is_reply_waiting(*connection)) {
        return CallRefusal::WrongState;
    }
    if (!fits<wire::Mra>(private_data)) {
        return CallRefusal::PrivateDataTooLong;
    }
    send_mra(*connection, service_timeout, private_data);
    return std::nullopt;
}

std::optional<CallRefusal> Manager::disconnect(ConnectionId id, std::span<const std::uint8_t> private_data,
                                               Instant now) {
    Connection* const connection = find_live(id);
    if (connection == nullptr) {
        return CallRefusal::UnknownConnection;
    }
    if (connection->state == State::Established) {
        if (!fits<wire::Dreq>(private_data)) {
            return CallRefusal::PrivateDataTooLong;
        }
        start_disconnect(*connection, private_data, now);
        return std::nullopt;
    }
    if (connection->state == State::DreqSent) {
        return std::nullopt;  // the manager found before that the peer has forgotten the connection
    }
    if (connection->state != State::DreqRcvd) {
        return CallRefusal::WrongState;
    }
    if (!fits<wire::Drep>(private_data)) {
        return CallRefusal::PrivateDataTooLong;
    }
    answer_dreq(*connection, private_data, now);
    return std::nullopt;
}

void Manager::forget(const User& user, Instant now) {
    listeners_.remove_if([&user](const Listener& listener) { return listener.user == &user; });
    datagrams_.forget(user);
    for (const ConnectionId id : table_.of_user(user)) {
        if (Connection* const connection = table_.find(id)) {
            connection->user = nullptr;
            (void)abandon(id, now);
        }
    }
}

std::optional<CallRefusal> Manager::abandon(ConnectionId id, Instant now, Parting parting) {
    Connection* const connection = table_.find(id);
    if (connection == nullptr) {
        return CallRefusal::UnknownConnection;
    }
    connection->abandoned = true;
    events_.forget(id);
    switch (connection->state) {
        case State::ReqSent:
        case State::MraReqRcvd:
            send_timeout_rej(*connection);  // as after a wait without an answer
            finish(*connection);
            break;
        case State::ReqRcvd:
        case State::MraReqSent:
            if (parting == Parting::Ignores) {
                counters_.count(Counter::BacklogFull);
                finish(*connection);
                break;
            }
            return reject(id, Refusal{}, now);
        case State::RepRcvd:
        case State::MraRepSent:
        case State::RepSent:
        case State::MraRepRcvd:
            return reject(id, Refusal{}, now);
        case State::Established:
        case State::DreqRcvd:
            return disconnect(id, {}, now);
        case State::DreqSent:
        case State::TimeWait:
            break;
        case State::Ended:
            remove(*connection);
            break;
        case State::Count:
            CAIRN_ASSERT(false);
    }
    return std::nullopt;
}

}  // namespace cairn::cm
