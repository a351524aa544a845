#include "lib/cm/manager.hpp"

#include <cstring>
#include <utility>

#include "lib/cm/last_words.hpp"
#include "lib/cm/messages.hpp"
#include "lib/cm/timeouts.hpp"

namespace cairn::cm {

namespace {

// Returns how long to wait for the peer's answer. The last copy of a reply waits longer, since the peer's answer may
// have been lost more than once.
Duration wait_of(const Connection& connection) noexcept {
    if (connection.state != State::RepSent) {
        return connection.wait;
    }
    return std::min(connection.wait, kLongestReplyWait) * (connection.retries_left == 0 ? 2 : 1);
}

}  // namespace

Manager::Manager(const Config& config)
    : config_(config),
      numbers_(config.seed, Purpose::ConnectionIds),
      outbox_(config.max_queued),
      table_(config.max_connections, numbers_, config.names),
      datagrams_(config_, numbers_, outbox_, events_, counters_) {}

std::optional<AddressedEvent> Manager::poll_addressed() {
    const std::optional<AddressedEvent> next = events_.pop();
    if (const Released* released = next ? std::get_if<Released>(&next->event) : nullptr) {
        Connection* const connection = table_.find(released->id);
        CAIRN_ASSERT(connection != nullptr && connection->state == State::Ended);
        remove(*connection);
    }
    return next;
}

Instant Manager::next_deadline() const noexcept {
    return std::min(deadlines_.earliest(), datagrams_.next_deadline());
}

void Manager::on_timeout(Instant now) {
    while (outbox_.has_room()) {
        const std::optional<ConnectionId> id = deadlines_.find_due(now);
        if (!id) {
            break;
        }
        Connection* const connection = table_.find(*id);
        CAIRN_ASSERT(connection != nullptr);
        arm(*connection, Instant::never());
        on_due(*connection, now);
    }
    datagrams_.on_timeout(now);
}

void Manager::on_due(Connection& connection, Instant now) {
    switch (connection.state) {
        case State::ReqRcvd:
        case State::RepRcvd:
            send_mra(connection, config_.service_timeout, {});
            break;
        case State::ReqSent:
        case State::MraReqRcvd:
        case State::RepSent:
        case State::MraRepRcvd:
        case State::DreqSent:
            if (connection.retries_left == 0) {
                give_up(connection, now);
                break;
            }
            --connection.retries_left;
            if (connection.state != State::DreqSent) {  // the time that the peer asked for is over
                connection.state = connection.active ? State::ReqSent : State::RepSent;
            }
            counters_.count(Counter::Retransmitted);
            transmit(connection, connection.message);
            arm(connection, now + wait_of(connection));
            break;
        case State::Established:
            --connection.retries_left;
            outbox_.push(connection.route, connection.message);
            arm(connection, connection.retries_left != 0 ? now + connection.wait : Instant::never());
            break;
        case State::TimeWait:
            finish(connection);
            break;
        case State::MraReqSent:
        case State::MraRepSent:
        case State::DreqRcvd:
        case State::Ended:
        case State::Count:
            CAIRN_ASSERT(false);
    }
}

void Manager::give_up(Connection& connection, Instant now) {
    counters_.count(Counter::GivenUp);
    if (connection.state == State::DreqSent) {
        emit(connection, Disconnected{connection.id, {}, true});
        enter_time_wait(connection, now);
        return;
    }
    const bool never_answered = connection.active;
    send_timeout_rej(connection);
    emit(connection, Unreachable{connection.id});
    if (never_answered) {
        finish(connection);
    } else {
        enter_time_wait(connection, now);
    }
}

void Manager::wait_for_answer(Connection& connection, Instant now) {
    const bool replied = connection.state == State::RepSent;
    const std::uint8_t copies = std::min(connection.allowance, kMostReplyCopies);
    connection.retries_left = replied ? std::min(connection.max_retries.value, copies)  //
                                      : connection.max_retries.value;
    arm(connection, now + wait_of(connection));
}

void Manager::emit(const Connection& connection, const Event& event) {
    if (!connection.abandoned) {
        events_.push(connection.user, event);
    }
}

void Manager::leave_backlog(Connection& connection) {
    const BacklogPlace place = std::exchange(connection.place, {});
    if (place.serial == 0) {
        return;
    }
    Listener* const listener = listeners_.find_exactly(place.service, place.local);
    if (listener != nullptr && listener->serial == place.serial) {
        listener->waiting.remove(connection.route.remote, place.ticket);
    }
}

void Manager::leave_strangers(Connection& connection) {
    const ConnectionShares::Ticket ticket = std::exchange(connection.stranger_ticket, {});
    if (ticket != 0) {
        strangers_.remove(connection.route.remote, ticket);
    }
}

void Manager::prove(Connection& connection) {
    if (connection.proven) {
        return;
    }
    connection.proven = true;
    leave_strangers(connection);
    const Connection* const before = table_.add_remote_qpn(connection);
    if (before != nullptr) {  // the peer's queue pair has a new connection now
        counters_.count(Counter::Stale);
        ask_whether_it_lives(*before);
    }
}

void Manager::establish(Connection& connection) {
    connection.state = State::Established;
    prove(connection);
    leave_backlog(connection);
    arm(connection, Instant::never());
}

// Forgets which message the last one answered. The caller sends the answer for later copies afterwards.
void Manager::enter_time_wait(Connection& connection, Instant now, Duration at_least) {
    connection.state = State::TimeWait;
    connection.answers.reset();
    leave_backlog(connection);
    const Duration time_wait = wire::duration_of(std::min(connection.ack_timeout, kLongestTimeWait));
    arm(connection, now + std::max(time_wait, at_least));
}

void Manager::finish(Connection& connection) {
    connection.state = State::Ended;
    arm(connection, Instant::never());
    leave_strangers(connection);
    table_.forget_remote(connection);
    if (connection.abandoned) {
        remove(connection);
    } else {
        events_.push(connection.user, Released{connection.id});
    }
}

void Manager::remove(Connection& connection) {
    leave_backlog(connection);
    leave_strangers(connection);
    arm(connection, Instant::never());
    table_.remove(connection);
}

Connection* Manager::find_live(ConnectionId id) noexcept {
    Connection* const connection = table_.find(id);
    return connection != nullptr && connection->state != State::Ended ? connection : nullptr;
}

const Connection* Manager::find(ConnectionId id) noexcept {
    return find_live(id);
}

void Manager::transmit(Connection& connection, const wire::MadBytes& bytes) {
    if (!connection.active && !connection.proven) {
        if (connection.allowance == 0) {
            return;
        }
        --connection.allowance;
    }
    outbox_.push(connection.route, bytes);
}

void Manager::send(Connection& connection, std::uint64_t transaction, const wire::CmMessage& message,
                   std::optional<Message> answers) {
    connection.message = wire::CmMad{transaction, message}.bytes();
    connection.answers = answers;
    transmit(connection, connection.message);
}

void Manager::send_mra(Connection& connection, wire::CmTimeout service_timeout, std::span<const std::uint8_t> data) {
    wire::Mra mra;
    mra.ids = {connection.id, connection.remote_id};
    mra.message = connection.active ? wire::Answered::Rep : wire::Answered::Req;
    mra.service_timeout = service_timeout;
    std::copy(data.begin(), data.end(), mra.private_data.begin());
    counters_.count(Counter::AskedForTime);
    connection.service = wire::duration_of(service_timeout);
    send(connection, connection.transaction, mra, connection.active ? Message::Rep : Message::Req);
    connection.state = connection.active ? State::MraRepSent : State::MraReqSent;
    arm(connection, Instant::never());
}

void Manager::send_timeout_rej(Connection& connection) {
    std::array<std::uint8_t, sizeof(Be64)> guid{};  // names it to a peer that knows no name of ours (12.6.7)
    const Be64 raw{config_.ca_guid};
    std::memcpy(guid.data(), &raw, guid.size());
    send(connection, connection.transaction,
         make_rej(connection, {wire::RejectReason::Timeout, guid, {}}, wire::Answered::Other), std::nullopt);
}

void Manager::start_disconnect(Connection& connection, std::span<const std::uint8_t> private_data, Instant now) {
    wire::Dreq dreq = make_dreq(connection);
    std::copy(private_data.begin(), private_data.end(), dreq.private_data.begin());
    send(connection, numbers_.next(), dreq, std::nullopt);
    connection.state = State::DreqSent;
    wait_for_answer(connection, now);
}

void Manager::answer_dreq(Connection& connection, std::span<const std::uint8_t> private_data, Instant now) {
    enter_time_wait(connection, now);
    wire::Drep drep;
    drep.ids = {connection.id, connection.remote_id};
    std::copy(private_data.begin(), private_data.end(), drep.private_data.begin());
    send(connection, connection.dreq_transaction, drep, Message::Dreq);
}

}  // namespace cairn::cm
