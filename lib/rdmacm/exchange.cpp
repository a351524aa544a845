#include "lib/rdmacm/exchange.hpp"

#include <cerrno>
#include <type_traits>
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

// The data of an event that has none to pass on.
struct Heard {
    News news;
    int status = 0;
};
[[nodiscard]] Heard heard_of(const cm::Established&) noexcept {
    return {News::Established};
}
[[nodiscard]] Heard heard_of(const cm::Unreachable&) noexcept {
    return {News::Unreachable, -ETIMEDOUT};
}
[[nodiscard]] Heard heard_of(const cm::DisconnectRequested&) noexcept {
    return {News::DisconnectAsked};
}
[[nodiscard]] Heard heard_of(const cm::Disconnected& said) noexcept {
    return {News::Disconnected, said.by_timeout ? -ETIMEDOUT : 0};
}

}  // namespace

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
    broker::Voice* const voice = device.adapter().voice();
    connections::HomeConfig config;
    config.has_queue_pair_1 = voice != nullptr;  // the broker leads management datagrams for us here
    config.cm.ack_delay = wire::CmTimeout{kThereAndBack};
    Result<std::unique_ptr<connections::Home>> home =
        connections::Home::create(connections::Agent::create(), device.adapter().worker(), config);
    if (!home.ok()) {
        return home.error();
    }
    made->home_ = std::move(home).value();
    if (voice != nullptr) {
        voice->manage();
    }
    made->tenancy_ = device.adapter().worker().add(*made, worker::Worker::Calls::WhenDue);
    return made;
}

Instant Exchange::now() noexcept {
    return device_.adapter().now();
}

void Exchange::settle() {
    home_->settle(now());
    device_.adapter().settle();
}

Psn draw_psn(const Device& device) noexcept {
    return Psn{static_cast<std::uint32_t>(device.adapter().engine().unguessable())};
}

std::uint32_t path_mtu_bytes(const Device& device) noexcept {
    return roce::largest_path_mtu(device.adapter().worker().port());
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

std::optional<cm::CallRefusal> Exchange::establish(cm::ConnectionId id) {
    const std::optional<cm::CallRefusal> refusal = manager().ready(id, {}, now());
    wills_.leave(manager().find(id), device_.adapter().engine().unguessable());
    return refusal;
}

void Exchange::abandon(Endpoint& endpoint) {
    if (endpoint.connection) {
        wills_.revoke(*endpoint.connection);
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

std::unique_ptr<Event> Exchange::apply(Endpoint* endpoint, News news, int status) {
    if (endpoint == nullptr) {
        return nullptr;
    }
    const Outcome outcome = judge_news(endpoint->state, news);
    endpoint->state = outcome.next;
    return outcome.told == Told::Nothing ? nullptr : std::make_unique<Event>(*endpoint, type_of(outcome.told), status);
}

void Exchange::on_event(const cm::Event& event, Instant) {
    std::visit([this](const auto& said) { hear(said); }, event);
}

void Exchange::hear(const cm::Replied& said) {
    Endpoint* const endpoint = find(said.id);
    if (std::unique_ptr<Event> event = apply(endpoint, News::Replied, 0)) {
        endpoint->parameters = said.qp;
        describe(*event, said.qp, said.private_data);
        tell(std::move(event));
    }
}

void Exchange::hear(const cm::Rejected& said) {
    if (std::unique_ptr<Event> event = apply(find(said.id), News::Rejected, static_cast<int>(said.reason))) {
        event->set_private_data(said.private_data.view());
        tell(std::move(event));
    }
}

template <class Kind>
void Exchange::hear(const Kind& said) {
    if constexpr (std::is_same_v<Kind, cm::Established>) {
        wills_.leave(manager().find(said.id), device_.adapter().engine().unguessable());
    }
    const Heard heard = heard_of(said);
    if (std::unique_ptr<Event> event = apply(find(said.id), heard.news, heard.status)) {
        tell(std::move(event));
    }
}

void Exchange::tell_established(Endpoint& endpoint) {
    hear(cm::Established{*endpoint.connection, {}});
}

void Exchange::hear(const cm::Released& said) {
    Endpoint* const endpoint = find(said.id);
    if (std::unique_ptr<Event> event = apply(endpoint, News::Released, 0)) {
        tell(std::move(event));
    }
    wills_.revoke(said.id);
    if (endpoint != nullptr) {
        endpoint->connection.reset();
        connections_.erase(said.id.value);
    }
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
