// Listeners of an exchange, and the requests of peers to them.
#include <cerrno>

#include "lib/rdmacm/exchange.hpp"

namespace cairn::rdmacm {

namespace {

// Returns the type of the queue pair at the end that the peer asks for.
[[nodiscard]] ibv_qp_type asked_type_of(wire::TransportService transport) noexcept {
    return transport == wire::TransportService::Uc         ? IBV_QPT_UC
           : transport == wire::TransportService::Extended ? IBV_QPT_XRC_RECV
                                                           : IBV_QPT_RC;
}

[[nodiscard]] cm::ServiceKind kind_of(const Endpoint& endpoint) noexcept {
    return endpoint.is_datagrams() ? cm::ServiceKind::Datagrams : cm::ServiceKind::Connections;
}

// Returns the service of the same port in the other port space.
[[nodiscard]] Service sibling_of(const Service& service) noexcept {
    const auto port = static_cast<std::uint16_t>(service.second.value);
    return service.first == cm::ServiceKind::Datagrams
               ? Service{cm::ServiceKind::Connections, wire::ip_service(wire::IpProtocol::Tcp, port)}
               : Service{cm::ServiceKind::Datagrams, wire::ip_service(wire::IpProtocol::Udp, port)};
}

[[nodiscard]] OwnedEndpoint make_asked(Device& device, const Endpoint& listener, Channel& channel, ibv_qp_type type,
                                       const cm::Route& route, const std::optional<cm::IpEnds>& ip) {
    OwnedEndpoint asked(new Endpoint(listener.space, type, channel));
    const bool is_v6 = !route.local.is_v4();
    asked->state = State::Asked;
    asked->local = {route.local, listener.local.port, is_v6, 0};
    asked->remote = {route.remote, ip ? ip->source_port : std::uint16_t{0}, is_v6, 0};
    asked->device = &device;
    asked->options.traffic_class = listener.options.traffic_class;
    asked->options.ack_timeout = listener.options.ack_timeout;
    return asked;
}

// Refuses a request for which no listener came in time. A request that ended meanwhile is not there any more.
void refuse(cm::Manager& manager, const cm::Event& request, Instant now) {
    if (const auto* const asked = std::get_if<cm::Requested>(&request)) {
        (void)manager.reject(asked->id, {wire::RejectReason::InvalidServiceId, {}, {}}, now);
    } else if (const auto* const question = std::get_if<cm::DatagramRequested>(&request)) {
        (void)manager.datagrams().answer(question->id, wire::SidrStatus::UnsupportedService, {}, now);
    }
}

}  // namespace

Endpoint* Exchange::find_listener(cm::ServiceKind kind, wire::ServiceId service) noexcept {
    const auto found = listeners_.find({kind, service});
    return found == listeners_.end() ? nullptr : found->second;
}

// Requests that came since the end of the last listener are for this one.
int Exchange::listen(Endpoint& endpoint, std::uint32_t backlog) {
    const Service service{kind_of(endpoint), service_of(endpoint, endpoint.local.port)};
    std::vector<cm::Event> held;
    if (linger_.end(service, held)) {
        drop(service);
    }
    if (!take(service, backlog)) {
        return EADDRINUSE;
    }
    listeners_[service] = &endpoint;
    for (const cm::Event& request : held) {
        on_event(request, now());
    }
    return 0;
}

// Stops listening. The next listener of the port may be one of the other port space.
bool Exchange::unlisten(Endpoint& endpoint) {
    const Service service{kind_of(endpoint), service_of(endpoint, endpoint.local.port)};
    const auto found = listeners_.find(service);
    if (found == listeners_.end() || found->second != &endpoint) {
        return false;
    }
    listeners_.erase(found);
    linger_.begin(service, now());
    const Service other = sibling_of(service);
    if (!listeners_.contains(other) && !linger_.has(other) && take(other, Linger::kMostHeld)) {
        linger_.begin(other, now());
    }
    tenancy_.wake_at(linger_.next_deadline());
    return true;
}

bool Exchange::take(const Service& service, std::uint32_t backlog) {
    return (service.first == cm::ServiceKind::Datagrams ? home_->listen_datagrams(service.second, std::nullopt, *this)
                                                        : home_->listen(service.second, backlog, *this))
        .ok();
}

void Exchange::drop(const Service& service) {
    (void)(service.first == cm::ServiceKind::Datagrams ? home_->unlisten_datagrams(service.second)
                                                       : home_->unlisten(service.second));
}

void Exchange::hold(const Service& service, const cm::Event& request) {
    if (!linger_.hold(service, request, now())) {
        refuse(manager(), request, now());
    }
    tenancy_.wake_at(linger_.next_deadline());
}

bool Exchange::on_turn(Instant now) noexcept {
    const Linger::Over over = linger_.take_due(now);
    for (const Service& service : over.services) {
        drop(service);
    }
    for (const cm::Event& request : over.requests) {
        refuse(manager(), request, now);
    }
    tenancy_.wake_at(linger_.next_deadline());
    home_->settle(now);
    return true;
}

void Exchange::hear(const cm::Requested& said) {
    Endpoint* const listener = find_listener(cm::ServiceKind::Connections, said.service);
    const ibv_qp_type type = asked_type_of(said.qp.transport);
    if (listener == nullptr) {
        hold({cm::ServiceKind::Connections, said.service}, said);
        return;
    }
    if (manager().find(said.id) == nullptr) {  // it was held, and ended
        return;
    }
    if (listener->type != type) {
        (void)manager().reject(said.id, {}, now());
        return;
    }
    Channel* const channel = find_room(*listener);
    if (channel == nullptr) {
        (void)manager().abandon(said.id, now(), cm::Parting::Ignores);
        return;
    }
    OwnedEndpoint asked = make_asked(device_, *listener, *channel, type, said.route, said.ip);
    asked->connection = said.id;
    asked->parameters = said.qp;
    asked->receive_psn = draw_psn(device_);
    connections_[said.id.value] = asked.get();
    auto event = std::make_unique<Event>(*listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    describe(*event, said.qp, said.private_data);
    event->asked = std::move(asked);
    tell(std::move(event));
}

void Exchange::hear(const cm::DatagramRequested& said) {
    Endpoint* const listener = find_listener(cm::ServiceKind::Datagrams, said.service);
    if (listener == nullptr) {
        hold({cm::ServiceKind::Datagrams, said.service}, said);
        return;
    }
    Channel* const channel = find_room(*listener);
    if (channel == nullptr) {
        manager().datagrams().ignore(said.id);
        return;
    }
    OwnedEndpoint asked = make_asked(device_, *listener, *channel, IBV_QPT_UD, said.route, said.ip);
    asked->question = said.id;
    questions_[said.id.value] = asked.get();
    auto event = std::make_unique<Event>(*listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    event->set_private_data(said.private_data.view());
    event->asked = std::move(asked);
    tell(std::move(event));
}

}  // namespace cairn::rdmacm
