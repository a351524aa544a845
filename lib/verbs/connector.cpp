#include "lib/verbs/connector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace cairn::verbs {

namespace {

struct StatusText {
    cm::Status status;
    std::string_view what;
    std::string_view remedy;
};
constexpr std::array kStatusTexts{
    StatusText{cm::Status::UnknownConnection, "the connection or question has ended", "look at its events"},
    StatusText{cm::Status::WrongState, "the connection is not in a state for this", "look at its events"},
    StatusText{cm::Status::PrivateDataTooLong, "the private data is too long", "send it as a message"},
    StatusText{cm::Status::BadParameters, "a parameter is out of range", "see ConnectTo, and give a backlog"},
    StatusText{cm::Status::BadAddress, "no host has this address, or it is of another family than the port's",
               "give a host's address, of the port's family"},
    StatusText{cm::Status::NoRoom, "there are as many connections as there may be", "raise max_connections"},
    StatusText{cm::Status::ServiceTaken, "somebody listens there already", "choose another port"},
    StatusText{cm::Status::UnknownService, "nobody listens there", "listen first"},
};

Status result_of(cm::Status status) {
    const auto found = std::find_if(kStatusTexts.begin(), kStatusTexts.end(),
                                    [status](const StatusText& text) { return text.status == status; });
    return found == kStatusTexts.end() ? Status(Nothing{})
                                       : Error{std::string(found->what), std::string(found->remedy)};
}

wire::TransportService transport_of(const Qp& qp) noexcept {
    return qp.service() == Service::Uc    ? wire::TransportService::Uc
           : qp.service() == Service::Xrc ? wire::TransportService::Extended
                                          : wire::TransportService::Rc;
}

// Of those wished, the ones that the queue pair can have.
std::uint32_t features_of(const Qp& qp, std::uint32_t wished) noexcept {
    return qp.service() != Service::Uc ? wished : wished & ~wire::kFeatureSelective;
}

Error refused_by_qp(ModifyVerdict verdict, std::uint32_t path_mtu_bytes) {
    if (verdict == ModifyVerdict::BadValue) {
        return {fmt::format("the port does not carry path MTU {}", path_mtu_bytes), "choose a smaller one"};
    }
    return {"the queue pair is not in RESET", "give a queue pair that has no connection"};
}

Error wrong_side() {
    return {"an XRC connection leads from an initiator to a target", "connect() initiators, accept() by targets"};
}

}  // namespace

Connector::Connector(Device& device, const ConnectorConfig& config)
    : ManagementQp(device.worker().datagrams(), device.worker().sender(), config.cm, config.udp_source_port),
      device_(device),
      config_(config) {}

Result<std::unique_ptr<Connector>> Connector::create(Device& device, const ConnectorConfig& config) {
    ConnectorConfig seeded = config;
    seeded.cm.seed = {device.worker().engine().unguessable(), device.worker().engine().unguessable()};
    std::unique_ptr<Connector> made(new Connector(device, seeded));
    const Status opened = made->open();
    if (!opened.ok()) {
        return opened.error();
    }
    made->tenancy_ = device.worker().add(*made);
    return made;
}

Connector::~Connector() {
    while (!links_.empty()) {
        unlink(ConnectionId{links_.begin()->first});
    }
    while (!waiting_.empty()) {
        forget_waiting(ConnectionId{waiting_.begin()->first});
    }
}

Status Connector::listen(std::uint16_t port, std::uint32_t backlog) {
    return result_of(manager().listen(wire::ip_service(wire::IpProtocol::Tcp, port), backlog));
}

Status Connector::unlisten(std::uint16_t port) {
    return result_of(manager().unlisten(wire::ip_service(wire::IpProtocol::Tcp, port)));
}

// What is no one host's address the manager refuses.
Status Connector::find_way(const net::IpAddress& remote, Instant now) {
    if (!remote.is_station()) {
        return Nothing{};
    }
    const auto way = device_.create_ah(remote, config_.udp_source_port, now);
    return way.ok() ? Status(Nothing{}) : Status(way.error());
}

Result<ConnectionId> Connector::connect(Qp& qp, const ConnectTo& to, Instant now) {
    if (qp.kind().is_target) {
        return wrong_side();
    }
    if (qp.state() != QpState::Reset || qp.in_use() || to.path_mtu_bytes > device_.limits().path_mtu_bytes) {
        return refused_by_qp(
            qp.state() != QpState::Reset || qp.in_use() ? ModifyVerdict::NoTransition : ModifyVerdict::BadValue,
            to.path_mtu_bytes);
    }
    cm::ConnectRequest request;
    request.route = {local_address(), to.remote};
    request.service = wire::ip_service(wire::IpProtocol::Tcp, to.port);
    request.source_port = config_.udp_source_port;
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
    const auto asked = manager().connect(request, now);
    if (!asked.ok()) {
        return result_of(asked.reason()).error();
    }
    qp.hold();
    Link& link = links_[asked.value().value];
    link = {&qp, request.starting_psn, to.choice};
    link.choice.private_data = {};
    send_messages(now);
    return asked.value();
}

Status Connector::accept(ConnectionId id, Qp& qp, const ConnectionChoice& choice, Instant now) {
    const auto found = waiting_.find(id.value);
    if (found == waiting_.end()) {
        return result_of(cm::Status::UnknownConnection);
    }
    const Waiting& waiting = found->second;
    if (transport_of(qp) != waiting.parameters.transport) {
        return Error{"the queue pair is of another service than is asked for", "make it as parameters.transport says"};
    }
    if (qp.service() == Service::Xrc && !qp.kind().is_target) {
        return wrong_side();
    }
    Link link{&qp, Psn{static_cast<std::uint32_t>(device_.worker().engine().unguessable())}, choice};
    link.choice.features = features_of(qp, choice.features) & waiting.features;
    link.choice.private_data = {};
    const ModifyVerdict verdict =
        qp.in_use() ? ModifyVerdict::NoTransition : bring_up(link, waiting.parameters, *waiting.path);
    if (verdict != ModifyVerdict::Ok) {
        return refused_by_qp(verdict, waiting.parameters.path_mtu_bytes);
    }
    cm::AcceptParameters accepted;
    accepted.qpn = qp.qpn();
    accepted.starting_psn = link.starting_psn;
    accepted.responder_resources = choice.responder_resources;
    accepted.initiator_depth = choice.initiator_depth;
    accepted.rnr_retry = wire::RetryCount{choice.rnr_retry};
    accepted.features = link.choice.features;
    accepted.private_data = choice.private_data;
    const cm::Status status = manager().accept(id, accepted, now);
    if (status != cm::Status::Ok) {
        (void)qp.modify(QpState::Reset);
        return result_of(status);
    }
    forget_waiting(id);
    qp.hold();
    links_[id.value] = link;
    unheard_.push_back(id);
    send_messages(now);
    return Nothing{};
}

Status Connector::reject(ConnectionId id, std::span<const std::uint8_t> private_data, Instant now) {
    const cm::Status status = manager().reject(id, {wire::RejectReason::Consumer, {}, private_data}, now);
    forget_waiting(id);
    heed(now);
    return result_of(status);
}

Status Connector::disconnect(ConnectionId id, std::span<const std::uint8_t> private_data, Instant now) {
    const cm::Status status = manager().disconnect(id, private_data, now);
    heed(now);
    return result_of(status);
}

void Connector::abandon(ConnectionId id, Instant now) {
    (void)manager().abandon(id, now);
    cm::forget_events(events_, id);
    stop(id);
    unlink(id);
    forget_waiting(id);
    send_messages(now);
}

Status Connector::listen_datagrams(std::uint16_t port, const std::optional<cm::DatagramService>& standing) {
    return result_of(manager().datagrams().listen(wire::ip_service(wire::IpProtocol::Udp, port), {}, standing));
}

Status Connector::unlisten_datagrams(std::uint16_t port) {
    return result_of(manager().datagrams().unlisten(wire::ip_service(wire::IpProtocol::Udp, port), {}));
}

Status Connector::answer(DatagramId id, const cm::DatagramService& service, Instant now) {
    const cm::Status status = manager().datagrams().answer(id, wire::SidrStatus::Valid, service, now);
    send_messages(now);
    return result_of(status);
}

Status Connector::refuse(DatagramId id, std::span<const std::uint8_t> private_data, Instant now) {
    const cm::Status status = manager().datagrams().answer(id, wire::SidrStatus::Rejected, {{}, {}, private_data}, now);
    send_messages(now);
    return result_of(status);
}

Result<DatagramId> Connector::resolve(const net::IpAddress& remote, std::uint16_t port,
                                      std::span<const std::uint8_t> private_data, Instant now) {
    cm::ResolveRequest request;
    request.route = {local_address(), remote};
    request.service = wire::ip_service(wire::IpProtocol::Udp, port);
    request.source_port = config_.udp_source_port;
    request.private_data = private_data;
    const Status way = find_way(remote, now);
    if (!way.ok()) {
        return way.error();
    }
    const auto asked = manager().datagrams().resolve(request, now);
    if (!asked.ok()) {
        return result_of(asked.reason()).error();
    }
    send_messages(now);
    return asked.value();
}

bool Connector::on_turn(Instant now) noexcept {
    run_due(now);
    return false;
}

std::optional<cm::Event> Connector::poll_event() {
    hear_peers();
    if (events_.empty()) {
        return std::nullopt;
    }
    cm::Event event = events_.front();
    events_.pop_front();
    return event;
}

std::string Connector::counters_text() const {
    return telemetry::text_of(manager().counters().snapshot()) + telemetry::text_of(manager().mad_drops().snapshot());
}

}  // namespace cairn::verbs
