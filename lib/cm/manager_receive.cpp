// Takes the messages of peers.
#include "lib/cm/manager.hpp"
#include "lib/cm/messages.hpp"
#include "lib/cm/timeouts.hpp"

namespace cairn::cm {

void Manager::on_mad(const Route& route, std::span<const std::uint8_t> bytes, Instant now) {
    if (!outbox_.has_room()) {
        counters_.count(Counter::Overload);
        return;
    }
    const wire::ParsedMad<wire::CmMad> parsed = wire::CmMad::parse(bytes);
    if (!parsed.ok()) {
        mad_drops_.count(parsed.reason());
        return;
    }
    const Incoming in{route, parsed.value().transaction, now};
    std::visit([&](const auto& message) { receive(in, message); }, parsed.value().message);
}

Verdict Manager::apply(Connection& connection, Message message, Instant now) {
    const Verdict verdict = judge(connection.state, message);
    if (verdict == Verdict::Unexpected) {
        counters_.count(Counter::Unexpected);
    }
    const bool again = verdict == Verdict::Duplicate || verdict == Verdict::Repeat || verdict == Verdict::AskForTime;
    if (again) {
        counters_.count(Counter::Duplicate);
    }
    if (message == Message::Req && again) {
        connection.allowance = std::min<std::uint8_t>(connection.allowance + kMostPerRequest, kMostSavedUp);
    }
    if (verdict == Verdict::Repeat && connection.answers == message) {
        transmit(connection, connection.message);
        if (connection.state == State::TimeWait && message == Message::Req) {  // another copy may come
            arm(connection, std::max(connection.deadline, now + connection.wait * 2));
        } else if (connection.state == State::RepSent) {
            wait_for_answer(connection, now);
        }
    }
    if (verdict == Verdict::AskForTime) {
        send_mra(connection, config_.service_timeout, {});
    }
    return verdict;
}

Connection* Manager::find_by_ids(const Incoming& in, const wire::CommIds& ids) {
    Connection* const connection = find_live(ids.remote);
    if (connection == nullptr) {
        counters_.count(Counter::UnknownConnection);
        return nullptr;
    }
    if (connection->route != in.route) {
        counters_.count(Counter::WrongPeer);
        return nullptr;
    }
    const bool named = !connection->has_remote || ids.local == connection->remote_id;
    if (!named) {
        counters_.count(Counter::UnknownConnection);
    }
    return named ? connection : nullptr;
}

void Manager::refuse(const Incoming& in, const wire::CommIds& ids, wire::Answered message, wire::RejectReason reason) {
    wire::Rej rej;
    rej.ids = {ids.remote, ids.local};
    rej.message = message;
    rej.reason = reason;
    outbox_.push(in.route, in.transaction, rej);
}

void Manager::receive(const Incoming& in, const wire::Rep& rep) {
    Connection* const connection = find_by_ids(in, rep.ids);
    if (connection == nullptr) {
        if (find_live(rep.ids.remote) == nullptr) {  // the peer need not wait for a RTU
            refuse(in, rep.ids, wire::Answered::Rep, wire::RejectReason::InvalidCommId);
        }
        return;
    }
    if (apply(*connection, Message::Rep, in.now) == Verdict::TakeRep) {
        take_rep(in, rep, *connection);
    }
}

void Manager::take_rep(const Incoming& in, const wire::Rep& rep, Connection& connection) {
    Connection* known = table_.find_remote(in.route.remote, rep.ids.local);
    const Qpn qpn = qpn_of(rep, connection.transport);
    if (known != nullptr && !known->proven) {  // a request that was not the peer's
        table_.forget_remote(*known);
        give_way(*known, in.now);  // which may remove it
        known = nullptr;
    }
    if (known == nullptr) {
        known = table_.find_remote_qpn(in.route.remote, qpn);
    }
    if (known != nullptr) {
        counters_.count(Counter::Stale);
        refuse(in, rep.ids, wire::Answered::Rep, wire::RejectReason::StaleConnection);
        ask_whether_it_lives(*known);
        emit(connection, Rejected{connection.id, wire::RejectReason::StaleConnection, false});
        finish(connection);
        return;
    }
    const wire::ParsedMad<wire::CmMad> sent = wire::CmMad::parse(connection.message);
    const wire::Req& req = std::get<wire::Req>(sent.value().message);
    connection.state = State::RepRcvd;
    connection.remote_id = rep.ids.local;
    connection.has_remote = true;
    connection.remote_qpn = qpn;
    connection.send_psn = rep.starting_psn;
    connection.answers.reset();
    table_.add_remote(connection);
    prove(connection);
    arm(connection, in.now + half_of(config_.response_timeout));
    const ReceivedData data = read_private_data(rep);
    const std::uint32_t offered = read_private_data(req).features;
    emit(connection, Replied{connection.id, parameters_of(config_, req, rep), data.features & offered, data.rest});
}

void Manager::receive(const Incoming& in, const wire::Rtu& rtu) {
    Connection* const connection = find_by_ids(in, rtu.ids);
    if (connection != nullptr && apply(*connection, Message::Rtu, in.now) == Verdict::TakeRtu) {
        establish(*connection);
        connection->answers.reset();
        emit(*connection, Established{connection->id, PrivateBytes::of(rtu.private_data)});
    }
}

void Manager::receive(const Incoming& in, const wire::Mra& mra) {
    Connection* const connection = find_by_ids(in, mra.ids);
    if (connection == nullptr) {
        return;
    }
    const wire::Answered about = connection->active ? wire::Answered::Req : wire::Answered::Rep;
    if (mra.message != about) {
        counters_.count(Counter::Unexpected);
        return;
    }
    if (apply(*connection, Message::Mra, in.now) == Verdict::TakeMra) {
        counters_.count(Counter::WasAskedForTime);
        if (connection->has_remote) {
            prove(*connection);
        }
        connection->state = connection->active ? State::MraReqRcvd : State::MraRepRcvd;
        const Duration service = wire::duration_of(std::min(mra.service_timeout, kLongestService));
        arm(*connection, in.now + service + connection->wait);
    }
}

// A peer that got no name of ours names the connection by its own name only (12.6.7). The peer of an established
// connection got one.
Connection* Manager::find_by_refusal(const Incoming& in, const wire::CommIds& ids) {
    const Connection* const half_open =
        ids.remote == wire::CommId{} ? table_.find_remote(in.route.remote, ids.local) : nullptr;
    const bool unnamed = half_open != nullptr && is_half_open(half_open->state) && !half_open->proven;
    return find_by_ids(in, {ids.local, unnamed ? half_open->id : ids.remote});
}

void Manager::receive(const Incoming& in, const wire::Rej& rej) {
    Connection* const connection = find_by_refusal(in, rej.ids);
    if (connection != nullptr && apply(*connection, Message::Rej, in.now) == Verdict::TakeRej) {
        take_rej(rej, *connection, in.now);
    }
}

void Manager::take_rej(const wire::Rej& rej, Connection& connection, Instant now) {
    if (connection.state == State::Established || connection.state == State::DreqSent) {
        emit(connection, Disconnected{connection.id, PrivateBytes::of(rej.private_data)});
        enter_time_wait(connection, now);
        return;
    }
    emit(connection,
         Rejected{connection.id, rej.reason, true, PrivateBytes::of(std::span(rej.info).first(rej.info_bytes)),
                  PrivateBytes::of(rej.private_data)});
    const bool never_ready = connection.state == State::ReqSent || connection.state == State::MraReqRcvd ||
                             connection.state == State::ReqRcvd || connection.state == State::MraReqSent;
    if (never_ready && rej.reason != wire::RejectReason::StaleConnection) {
        finish(connection);
    } else {
        enter_time_wait(connection, now);
    }
}

void Manager::echo_drep(const Incoming& in, const wire::Dreq& dreq) {
    outbox_.push(in.route, in.transaction, wire::Drep{{dreq.ids.remote, dreq.ids.local}, {}});
}

void Manager::receive(const Incoming& in, const wire::Dreq& dreq) {
    Connection* const connection = find_live(dreq.ids.remote);
    if (connection == nullptr || connection->route != in.route) {
        counters_.count(connection == nullptr ? Counter::UnknownConnection : Counter::WrongPeer);
        if (connection == nullptr) {
            echo_drep(in, dreq);  // the connection is over here, as the peer wants
        }
        return;
    }
    if (!connection->has_remote || connection->remote_id != dreq.ids.local ||
        connection->local_qpn != dreq.remote_qpn) {
        counters_.count(Counter::Unexpected);
        return;
    }
    prove(*connection);
    const Verdict verdict = apply(*connection, Message::Dreq, in.now);
    if (verdict == Verdict::TakeDreq || verdict == Verdict::CrossDreq) {
        connection->dreq_transaction = in.transaction;
    }
    if (verdict == Verdict::CrossDreq) {
        emit(*connection, Disconnected{connection->id, PrivateBytes::of(dreq.private_data)});
        answer_dreq(*connection, {}, in.now);
    } else if (verdict == Verdict::TakeDreq && connection->abandoned) {
        answer_dreq(*connection, {}, in.now);
    } else if (verdict == Verdict::TakeDreq) {
        leave_backlog(*connection);
        connection->state = State::DreqRcvd;
        arm(*connection, Instant::never());
        emit(*connection, DisconnectRequested{connection->id, PrivateBytes::of(dreq.private_data)});
    } else if (verdict == Verdict::Repeat && connection->answers != Message::Dreq) {
        echo_drep(in, dreq);
    }
}

void Manager::receive(const Incoming& in, const wire::Drep& drep) {
    Connection* const connection = find_by_ids(in, drep.ids);
    if (connection != nullptr && apply(*connection, Message::Drep, in.now) == Verdict::TakeDrep) {
        emit(*connection, Disconnected{connection->id, PrivateBytes::of(drep.private_data)});
        enter_time_wait(*connection, in.now);
    }
}

void Manager::receive(const Incoming& in, const wire::SidrReq& req) {
    datagrams_.on_request(in.route, in.transaction, req);
}

void Manager::receive(const Incoming& in, const wire::SidrRep& rep) {
    datagrams_.on_reply(in.route, rep);
}

void Manager::receive(const Incoming& in, const wire::Lap& lap) {
    counters_.count(Counter::AlternatePath);
    outbox_.push(in.route, in.transaction, wire::Apr{{lap.ids.remote, lap.ids.local}});
}

void Manager::receive(const Incoming&, const wire::Apr&) {
    counters_.count(Counter::Unexpected);  // this side asks for no alternate path
}

}  // namespace cairn::cm
