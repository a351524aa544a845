#include "lib/verbs/connector.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cairn::verbs {

namespace {

wire::TransportService transport_of(const Qp& qp) noexcept {
    return qp.service() == Service::Uc    ? wire::TransportService::Uc
           : qp.service() == Service::Xrc ? wire::TransportService::Extended
                                          : wire::TransportService::Rc;
}

// Returns the wished features that the queue pair can have.
std::uint32_t features_of(const Qp& qp, std::uint32_t wished) noexcept {
    return qp.service() != Service::Uc ? wished : wished & ~wire::kFeaturesOfRc;
}

Error refused_by_qp(ModifyRefusal refusal, std::uint32_t path_mtu_bytes) {
    if (refusal == ModifyRefusal::BadValue) {
        return {fmt::format("the port does not carry path MTU {}", path_mtu_bytes), "choose a smaller one"};
    }
    return {"the queue pair is not in RESET", "give a queue pair that has no connection"};
}

Error wrong_side() {
    return {"an XRC connection leads from an initiator to a target", "connect() initiators, accept() by targets"};
}

}  // namespace

Connector::Connector(Device& device, connections::Home& home)
    : device_(device), home_(home), tenancy_(device.worker().add(*this, worker::Worker::Calls::WhenDue)) {
    CAIRN_ASSERT(&device.worker() == &home.worker());
}

Connector::~Connector() {
    home_.leave(*this);
    awaited_.clear();
    for (auto& [id, link] : links_) {
        end(link);
    }
}

Status Connector::listen(std::uint16_t port, std::uint32_t backlog, connections::Sharing sharing) {
    return home_.listen(wire::ip_service(wire::IpProtocol::Tcp, port), backlog, *this, sharing);
}

Status Connector::unlisten(std::uint16_t port) {
    return home_.unlisten(wire::ip_service(wire::IpProtocol::Tcp, port));
}

// An address that belongs to no single host is left to the manager, which refuses it.
Status Connector::find_way(const net::IpAddress& remote, Instant now) {
    if (!remote.is_station()) {
        return Nothing{};
    }
    const auto way = device_.create_ah(remote, home_.udp_source_port(), now);
    return way.ok() ? Status(Nothing{}) : Status(way.error());
}

Result<ConnectionId> Connector::connect(Qp& qp, const ConnectTo& to, Instant now) {
    if (qp.kind().is_target) {
        return wrong_side();
    }
    if (qp.state() != QpState::Reset || qp.in_use() || to.path_mtu_bytes > device_.limits().path_mtu_bytes) {
        return refused_by_qp(
            qp.state() != QpState::Reset || qp.in_use() ? ModifyRefusal::NoTransition : ModifyRefusal::BadValue,
            to.path_mtu_bytes);
    }
    cm::ConnectRequest request;
    request.route = {home_.local_address(), to.remote};
    request.service = wire::ip_service(wire::IpProtocol::Tcp, to.port);
    request.source_port = home_.udp_source_port();
    request.transport = transport_of(qp);
    request.qpn = qp.qpn();
    request.starting_psn = Psn{static_cast<std::uint32_t>(device_.worker().engine().unguessable())};
    request.path_mtu_bytes = to.path_mtu_bytes;
    request.responder_resources = to.choice.responder_resources;
    request.initiator_depth = to.choice.initiator_depth;
    request.retry_count = wire::RetryCount{to.retry_count};
    request.rnr_retry = wire::RetryCount{to.choice.rnr_retry};
    request.features = features_of(qp, to.choice.features);
    request.private_data = to.choice.private_data;
    const Status way = find_way(to.remote, now);
    if (!way.ok()) {
        return way.error();
    }
    const auto asked = home_.manager().connect(request, now, this);
    if (!asked.ok()) {
        return connections::status_of(asked.reason()).error();
    }
    qp.hold();
    Link& link = links_[asked.value().value];
    link.stage = Link::Stage::Connecting;
    link.qp = &qp;
    link.starting_psn = request.starting_psn;
    link.choice = to.choice;
    link.choice.private_data = {};
    home_.settle(now);
    return asked.value();
}

Status Connector::accept(ConnectionId id, Qp& qp, const ConnectionChoice& choice, Instant now) {
    const auto found = links_.find(id.value);
    if (found == links_.end()) {
        return connections::status_of(cm::CallRefusal::UnknownConnection);
    }
    Link& asked = found->second;
    if (asked.stage != Link::Stage::Asked) {
        return connections::status_of(cm::CallRefusal::WrongState);
    }
    if (transport_of(qp) != asked.parameters.transport) {
        return Error{"the queue pair is of another service than is asked for", "make it as parameters.transport says"};
    }
    if (qp.service() == Service::Xrc && !qp.kind().is_target) {
        return wrong_side();
    }
    Link link = asked;
    link.qp = &qp;
    link.starting_psn = Psn{static_cast<std::uint32_t>(device_.worker().engine().unguessable())};
    link.choice = choice;
    link.choice.features = features_of(qp, choice.features) & asked.features;
    link.choice.private_data = {};
    if (const std::optional<ModifyRefusal> refusal =
            qp.in_use() ? ModifyRefusal::NoTransition : bring_up(link, asked.parameters, *asked.path)) {
        return refused_by_qp(*refusal, asked.parameters.path_mtu_bytes);
    }
    cm::AcceptParameters accepted;
    accepted.qpn = qp.qpn();
    accepted.starting_psn = link.starting_psn;
    accepted.responder_resources = choice.responder_resources;
    accepted.initiator_depth = choice.initiator_depth;
    accepted.rnr_retry = wire::RetryCount{choice.rnr_retry};
    accepted.features = link.choice.features;
    accepted.private_data = choice.private_data;
    if (const std::optional<cm::CallRefusal> refusal = home_.manager().accept(id, accepted, now)) {
        (void)qp.modify(QpState::Reset);
        return connections::status_of(refusal);
    }
    qp.hold();
    asked = link;
    asked.stage = Link::Stage::Accepted;
    awaited_.try_emplace(id.value, *this, id, qp);
    home_.settle(now);
    return Nothing{};
}

Status Connector::reject(ConnectionId id, std::span<const std::uint8_t> private_data, Instant now) {
    const std::optional<cm::CallRefusal> refusal =
        home_.manager().reject(id, {wire::RejectReason::Consumer, {}, private_data}, now);
    if (const auto found = links_.find(id.value); found != links_.end() && found->second.stage == Link::Stage::Asked) {
        forget(id);
    }
    home_.settle(now);
    return connections::status_of(refusal);
}

Status Connector::disconnect(ConnectionId id, std::span<const std::uint8_t> private_data, Instant now) {
    const std::optional<cm::CallRefusal> refusal = home_.manager().disconnect(id, private_data, now);
    home_.settle(now);
    return connections::status_of(refusal);
}

void Connector::abandon(ConnectionId id, Instant now) {
    (void)home_.manager().abandon(id, now);
    std::erase_if(events_, [id](const cm::Event& event) { return cm::is_of(event, id); });
    stop(id);
    forget(id);
    home_.settle(now);
}

Status Connector::listen_datagrams(std::uint16_t port, const std::optional<cm::DatagramService>& standing,
                                   connections::Sharing sharing) {
    return home_.listen_datagrams(wire::ip_service(wire::IpProtocol::Udp, port), standing, *this, sharing);
}

Status Connector::unlisten_datagrams(std::uint16_t port) {
    return home_.unlisten_datagrams(wire::ip_service(wire::IpProtocol::Udp, port));
}

Status Connector::answer(DatagramId id, const cm::DatagramService& service, Instant now) {
    const std::optional<cm::CallRefusal> refusal =
        home_.manager().datagrams().answer(id, wire::SidrStatus::Valid, service, now);
    home_.settle(now);
    return connections::status_of(refusal);
}

Status Connector::refuse(DatagramId id, std::span<const std::uint8_t> private_data, Instant now) {
    const std::optional<cm::CallRefusal> refusal =
        home_.manager().datagrams().answer(id, wire::SidrStatus::Rejected, {{}, {}, private_data}, now);
    home_.settle(now);
    return connections::status_of(refusal);
}

Result<DatagramId> Connector::resolve(const net::IpAddress& remote, std::uint16_t port,
                                      std::span<const std::uint8_t> private_data, Instant now) {
    cm::ResolveRequest request;
    request.route = {home_.local_address(), remote};
    request.service = wire::ip_service(wire::IpProtocol::Udp, port);
    request.source_port = home_.udp_source_port();
    request.private_data = private_data;
    const Status way = find_way(remote, now);
    if (!way.ok()) {
        return way.error();
    }
    const auto asked = home_.manager().datagrams().resolve(request, now, this);
    if (!asked.ok()) {
        return connections::status_of(asked.reason()).error();
    }
    home_.settle(now);
    return asked.value();
}

std::optional<cm::Event> Connector::poll_event() {
    if (events_.empty()) {
        return std::nullopt;
    }
    const cm::Event event = events_.front();
    events_.pop_front();
    return event;
}

}  // namespace cairn::verbs
