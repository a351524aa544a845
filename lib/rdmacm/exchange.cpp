#include "lib/rdmacm/exchange.hpp"

#include <cerrno>
#include <variant>

#include "lib/ibverbs/objects.hpp"
#include "lib/roce/engine.hpp"

namespace cairn::rdmacm {

namespace {

[[nodiscard]] rdma_cm_event_type type_of(Told told) noexcept {
    switch (told) {
        case Told::Response:
            return RDMA_CM_EVENT_CONNECT_RESPONSE;
        case Told::Established:
            return RDMA_CM_EVENT_ESTABLISHED;
        case Told::Rejected:
            return RDMA_CM_EVENT_REJECTED;
        case Told::Unreachable:
            return RDMA_CM_EVENT_UNREACHABLE;
        case Told::Disconnected:
            return RDMA_CM_EVENT_DISCONNECTED;
        case Told::TimewaitExit:
            return RDMA_CM_EVENT_TIMEWAIT_EXIT;
        case Told::Nothing:
            break;
    }
    return RDMA_CM_EVENT_CONNECT_ERROR;
}

// Returns the type of the queue pair at the end that is asked.
[[nodiscard]] ibv_qp_type asked_type_of(wire::TransportService transport) noexcept {
    return transport == wire::TransportService::Uc         ? IBV_QPT_UC
           : transport == wire::TransportService::Extended ? IBV_QPT_XRC_RECV
                                                           : IBV_QPT_RC;
}

// Fills in what the program is told of its peer.
void describe(Event& event, const cm::QpParameters& peer, const cm::PrivateBytes& data) noexcept {
    event.param.conn.responder_resources = peer.max_dest_rd_atomic;
    event.param.conn.initiator_depth = peer.max_rd_atomic;
    event.param.conn.flow_control = peer.flow_control ? 1 : 0;
    event.param.conn.retry_count = peer.retry_count.value;
    event.param.conn.rnr_retry_count = peer.rnr_retry.value;
    event.param.conn.srq = peer.srq ? 1 : 0;
    event.param.conn.qp_num = peer.remote_qpn.value;
    event.set_private_data(data.view());
}

[[nodiscard]] cm::ServiceKind kind_of(const Endpoint& endpoint) noexcept {
    return endpoint.is_datagrams() ? cm::ServiceKind::Datagrams : cm::ServiceKind::Connections;
}

}  // namespace

wire::ServiceId service_of(const Endpoint& endpoint, std::uint16_t port) noexcept {
    return wire::ServiceId{std::uint64_t{static_cast<unsigned>(endpoint.space)} << 16U | port};
}

int errno_of(cm::CallRefusal refusal) noexcept {
    switch (refusal) {
        case cm::CallRefusal::BadAddress:
            return EADDRNOTAVAIL;
        case cm::CallRefusal::NoRoom:
            return ENOMEM;
        case cm::CallRefusal::ServiceTaken:
            return EADDRINUSE;
        case cm::CallRefusal::UnknownConnection:
        case cm::CallRefusal::WrongState:
        case cm::CallRefusal::PrivateDataTooLong:
        case cm::CallRefusal::BadParameters:
        case cm::CallRefusal::UnknownService:
            break;
    }
    return EINVAL;
}

Result<std::unique_ptr<Exchange>> Exchange::open(Device& device) {
    std::unique_ptr<Exchange> made(new Exchange(device));
    const std::lock_guard hold(device.adapter().lock());
    Result<std::unique_ptr<connections::Home>> home =
        connections::Home::create(connections::Agent::create(), device.adapter().worker(), {});
    if (!home.ok()) {
        return home.error();
    }
    made->home_ = std::move(home).value();
    return made;
}

Exchange::~Exchange() = default;

Instant Exchange::now() noexcept {
    return adapter().now();
}

void Exchange::settle() {
    home_->settle(now());
    adapter().settle();
}

Psn draw_psn(const Device& device) noexcept {
    return Psn{static_cast<std::uint32_t>(device.adapter().engine().unguessable())};
}

std::uint32_t path_mtu_bytes(const Device& device) noexcept {
    return roce::largest_path_mtu(device.adapter().worker().port());
}

int Exchange::listen(Endpoint& endpoint, std::uint32_t backlog) {
    const wire::ServiceId service = service_of(endpoint, endpoint.local.port);
    const Status taken = endpoint.is_datagrams() ? home_->listen_datagrams(service, std::nullopt, *this)
                                                 : home_->listen(service, backlog, *this);
    if (!taken.ok()) {
        return EADDRINUSE;
    }
    listeners_[{kind_of(endpoint), service}] = &endpoint;
    return 0;
}

void Exchange::unlisten(Endpoint& endpoint) noexcept {
    const Service service{kind_of(endpoint), service_of(endpoint, endpoint.local.port)};
    const auto found = listeners_.find(service);
    if (found == listeners_.end() || found->second != &endpoint) {
        return;
    }
    listeners_.erase(found);
    (void)(endpoint.is_datagrams() ? home_->unlisten_datagrams(service.second) : home_->unlisten(service.second));
}

int Exchange::connect(Endpoint& endpoint, const cm::ConnectRequest& request) {
    const auto asked = manager().connect(request, now(), this);
    if (!asked.ok()) {
        return errno_of(asked.reason());
    }
    endpoint.connection = asked.value();
    connections_[asked.value().value] = &endpoint;
    return 0;
}

int Exchange::ask(Endpoint& endpoint, const cm::ResolveRequest& request) {
    const auto asked = manager().datagrams().resolve(request, now(), this);
    if (!asked.ok()) {
        return errno_of(asked.reason());
    }
    endpoint.question = asked.value();
    questions_[asked.value().value] = &endpoint;
    return 0;
}

void Exchange::abandon(Endpoint& endpoint) {
    if (endpoint.connection) {
        connections_.erase(endpoint.connection->value);
        (void)manager().abandon(*endpoint.connection, now());
        endpoint.connection.reset();
    }
    if (endpoint.question) {
        if (endpoint.state == State::Asked) {
            (void)manager().datagrams().answer(*endpoint.question, wire::SidrStatus::Rejected, {}, now());
        } else {
            (void)manager().datagrams().cancel(*endpoint.question);
        }
        forget_question(endpoint);
    }
}

void Exchange::forget_question(Endpoint& endpoint) noexcept {
    questions_.erase(endpoint.question->value);
    endpoint.question.reset();
}

void Exchange::end_all() {
    for (const auto& [id, endpoint] : connections_) {
        (void)manager().abandon(cm::ConnectionId{id}, now());
        endpoint->connection.reset();
    }
    connections_.clear();
    settle();
}

Endpoint* Exchange::find(cm::ConnectionId id) noexcept {
    const auto found = connections_.find(id.value);
    return found == connections_.end() ? nullptr : found->second;
}

Endpoint* Exchange::find_listener(cm::ServiceKind kind, wire::ServiceId service) noexcept {
    const auto found = listeners_.find({kind, service});
    return found == listeners_.end() ? nullptr : found->second;
}

std::unique_ptr<Event> Exchange::apply(Endpoint* endpoint, News news, int status) {
    if (endpoint == nullptr) {
        return nullptr;
    }
    const Outcome outcome = judge_news(endpoint->state, news);
    endpoint->state = outcome.next;
    return outcome.told == Told::Nothing ? nullptr : std::make_unique<Event>(*endpoint, type_of(outcome.told), status);
}

OwnedEndpoint Exchange::make_asked(Endpoint& listener, ibv_qp_type type, const cm::Route& route,
                                   const std::optional<cm::IpEnds>& ip) {
    Channel* channel = nullptr;
    {
        const EventLock hold;
        channel = listener.channel;
    }
    OwnedEndpoint asked(new Endpoint(listener.space, type, *channel));
    const bool is_v6 = !route.local.is_v4();
    asked->state = State::Asked;
    asked->local = {route.local, listener.local.port, is_v6, 0};
    asked->remote = {route.remote, ip ? ip->source_port : std::uint16_t{0}, is_v6, 0};
    asked->device = &device_;
    asked->options.traffic_class = listener.options.traffic_class;
    asked->options.ack_timeout = listener.options.ack_timeout;
    return asked;
}

void Exchange::on_event(const cm::Event& event, Instant) {
    std::visit([this](const auto& said) { hear(said); }, event);
}

void Exchange::hear(const cm::Requested& said) {
    Endpoint* const listener = find_listener(cm::ServiceKind::Connections, said.service);
    const ibv_qp_type type = asked_type_of(said.qp.transport);
    if (listener == nullptr || listener->type != type) {
        (void)manager().reject(said.id, {}, now());
        return;
    }
    OwnedEndpoint asked = make_asked(*listener, type, said.route, said.ip);
    asked->connection = said.id;
    asked->parameters = said.qp;
    asked->receive_psn = draw_psn(device_);
    connections_[said.id.value] = asked.get();
    auto event = std::make_unique<Event>(*listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    describe(*event, said.qp, said.private_data);
    event->asked = std::move(asked);
    tell(std::move(event));
}

void Exchange::hear(const cm::Replied& said) {
    Endpoint* const endpoint = find(said.id);
    if (std::unique_ptr<Event> event = apply(endpoint, News::Replied, 0)) {
        endpoint->parameters = said.qp;
        describe(*event, said.qp, said.private_data);
        tell(std::move(event));
    }
}

void Exchange::hear(const cm::Established& said) {
    if (std::unique_ptr<Event> event = apply(find(said.id), News::Established, 0)) {
        tell(std::move(event));
    }
}

void Exchange::hear(const cm::Rejected& said) {
    if (std::unique_ptr<Event> event = apply(find(said.id), News::Rejected, static_cast<int>(said.reason))) {
        event->set_private_data(said.private_data.view());
        tell(std::move(event));
    }
}

void Exchange::hear(const cm::Unreachable& said) {
    if (std::unique_ptr<Event> event = apply(find(said.id), News::Unreachable, -ETIMEDOUT)) {
        tell(std::move(event));
    }
}

void Exchange::hear(const cm::DisconnectRequested& said) {
    if (std::unique_ptr<Event> event = apply(find(said.id), News::DisconnectAsked, 0)) {
        tell(std::move(event));
    }
}

void Exchange::hear(const cm::Disconnected& said) {
    if (std::unique_ptr<Event> event = apply(find(said.id), News::Disconnected, said.by_timeout ? -ETIMEDOUT : 0)) {
        tell(std::move(event));
    }
}

void Exchange::hear(const cm::Released& said) {
    Endpoint* const endpoint = find(said.id);
    if (std::unique_ptr<Event> event = apply(endpoint, News::Released, 0)) {
        tell(std::move(event));
    }
    if (endpoint != nullptr) {
        endpoint->connection.reset();
        connections_.erase(said.id.value);
    }
}

void Exchange::hear(const cm::DatagramRequested& said) {
    Endpoint* const listener = find_listener(cm::ServiceKind::Datagrams, said.service);
    if (listener == nullptr) {
        (void)manager().datagrams().answer(said.id, wire::SidrStatus::UnsupportedService, {}, now());
        return;
    }
    OwnedEndpoint asked = make_asked(*listener, IBV_QPT_UD, said.route, said.ip);
    asked->question = said.id;
    questions_[said.id.value] = asked.get();
    auto event = std::make_unique<Event>(*listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    event->set_private_data(said.private_data.view());
    event->asked = std::move(asked);
    tell(std::move(event));
}

void Exchange::hear(const cm::Resolved& said) {
    const auto found = questions_.find(said.id.value);
    if (found == questions_.end()) {
        return;
    }
    Endpoint& endpoint = *found->second;
    questions_.erase(found);
    endpoint.question.reset();
    const bool known = said.status == wire::SidrStatus::Valid;
    const int status = known ? 0 : said.status ? static_cast<int>(*said.status) : -ETIMEDOUT;
    std::unique_ptr<Event> event = apply(&endpoint, known ? News::Established : News::Unreachable, status);
    if (event == nullptr) {
        return;
    }
    event->set_private_data(said.private_data.view());
    if (known) {
        event->param.ud.ah_attr = way_to(endpoint, endpoint.remote.address);
        event->param.ud.qp_num = said.qpn.value;
        event->param.ud.qkey = said.qkey.value;
    }
    tell(std::move(event));
}

}  // namespace cairn::rdmacm
