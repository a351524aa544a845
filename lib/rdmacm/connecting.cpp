// Endpoints listen, connect, and part.
#include <algorithm>
#include <cerrno>

#include "lib/rdmacm/endpoint.hpp"
#include "lib/rdmacm/exchange.hpp"

namespace cairn::rdmacm {

namespace {

constexpr int kMostBacklog = 1024;
constexpr std::uint8_t kMostRetries = 7;

[[nodiscard]] std::span<const std::uint8_t> private_data_of(const rdma_conn_param& from) noexcept {
    const auto* const bytes = static_cast<const std::uint8_t*>(from.private_data);
    return bytes == nullptr ? std::span<const std::uint8_t>{} : std::span(bytes, from.private_data_len);
}

[[nodiscard]] std::uint8_t retries_of(std::uint8_t wanted) noexcept {
    return std::min(wanted, kMostRetries);
}

// Listens at one of several devices, for an endpoint that is bound to none.
[[nodiscard]] int listen_on(Device& device, Endpoint& endpoint, std::uint32_t backlog) {
    const wire::ServiceId service = service_of(endpoint, endpoint.local.port);
    if (const int taken = claim_service(device, service, false); taken != 0) {
        return taken;
    }
    const std::lock_guard hold(device.adapter().lock());
    const int refused = device.exchange->listen(endpoint, backlog);
    if (refused != 0) {
        release_service(device, service);
    }
    return refused;
}

// Listens where the endpoint is bound. A port that is shared is its program's alone from now on, if no other has it.
[[nodiscard]] int listen_where_bound(Held& held, Endpoint& endpoint, std::uint32_t backlog) {
    if (endpoint.claimed.serves && endpoint.claimed.shares) {
        const auto claim_alone = [&endpoint] {
            return claim_service(*endpoint.device, service_of(endpoint, endpoint.local.port), false);
        };
        if (const int taken = held.without_adapter(claim_alone); taken != 0) {
            return taken;
        }
    }
    return endpoint.device->exchange->listen(endpoint, backlog);
}

// Stops listening at the device. The device may have another listener of the port, if the endpoint listens to one
// family only.
void unlisten_on(Device& device, Endpoint& endpoint) {
    bool listened = false;
    {
        const std::lock_guard hold(device.adapter().lock());
        listened = device.exchange->unlisten(endpoint);
    }
    if (listened) {
        release_service(device, service_of(endpoint, endpoint.local.port));
    }
}

// Listens at the devices of the endpoint's family, of which there may be none. Needs `calls`. Returns an errno value.
[[nodiscard]] int listen_everywhere(Endpoint& endpoint, std::uint32_t backlog) {
    const bool v4 = !endpoint.local.is_v6 || !is_of_own_family(endpoint, endpoint.local);
    const bool v6 = endpoint.local.is_v6;
    std::vector<Device*> taken;
    const std::vector<Device*> all = open_all();
    int reason = all.empty() ? ENODEV : 0;
    for (Device* const device : all) {
        if (!(device->address().is_v4() ? v4 : v6)) {
            continue;
        }
        reason = listen_on(*device, endpoint, backlog);
        if (reason != 0) {
            break;
        }
        taken.push_back(device);
    }
    if (reason != 0) {
        for (Device* const device : taken) {
            unlisten_on(*device, endpoint);
        }
    }
    return reason;
}

// Returns whether the endpoint may connect: its port space has services, whose requests carry the requester's address.
[[nodiscard]] bool has_service(const Endpoint& endpoint) noexcept {
    return endpoint.space == RDMA_PS_TCP || endpoint.space == RDMA_PS_UDP;
}

[[nodiscard]] int ask_for_datagrams(Endpoint& endpoint, const rdma_conn_param& wanted) {
    cm::ResolveRequest request;
    request.route = {endpoint.local.address, endpoint.remote.address};
    request.service = service_of(endpoint, endpoint.remote.port);
    request.source_port = endpoint.local.port;
    request.private_data = private_data_of(wanted);
    return endpoint.device->exchange->ask(endpoint, request);
}

[[nodiscard]] int ask_for_connection(Endpoint& endpoint, const rdma_conn_param& wanted) {
    Exchange& exchange = *endpoint.device->exchange;
    cm::ConnectRequest request;
    request.route = {endpoint.local.address, endpoint.remote.address};
    request.service = service_of(endpoint, endpoint.remote.port);
    request.source_port = endpoint.local.port;
    request.transport = endpoint.type == IBV_QPT_UC         ? wire::TransportService::Uc
                        : endpoint.type == IBV_QPT_XRC_SEND ? wire::TransportService::Extended
                                                            : wire::TransportService::Rc;
    request.qpn = Qpn{wanted.qp_num};
    request.starting_psn = draw_psn(*endpoint.device);
    request.path_mtu_bytes = path_mtu_bytes(*endpoint.device);
    request.responder_resources = wanted.responder_resources;
    request.initiator_depth = wanted.initiator_depth;
    request.retry_count = wire::RetryCount{retries_of(wanted.retry_count)};
    request.rnr_retry = wire::RetryCount{retries_of(wanted.rnr_retry_count)};
    request.srq = wanted.srq != 0;
    request.flow_control = wanted.flow_control != 0;
    request.traffic_class = endpoint.options.traffic_class;
    request.features = 0;  // the private data belong to the program
    request.private_data = private_data_of(wanted);
    endpoint.receive_psn = request.starting_psn;
    endpoint.qpn = wanted.qp_num;
    return exchange.connect(endpoint, request);
}

[[nodiscard]] int accept_connection(Endpoint& endpoint, const rdma_conn_param& wanted) {
    Exchange& exchange = *endpoint.device->exchange;
    cm::AcceptParameters accepted;
    accepted.qpn = Qpn{wanted.qp_num};
    accepted.starting_psn = endpoint.receive_psn;
    accepted.responder_resources = wanted.responder_resources;
    accepted.initiator_depth = wanted.initiator_depth;
    accepted.rnr_retry = wire::RetryCount{retries_of(wanted.rnr_retry_count)};
    accepted.srq = wanted.srq != 0;
    accepted.flow_control = wanted.flow_control != 0;
    accepted.private_data = private_data_of(wanted);
    endpoint.qpn = wanted.qp_num;
    const std::optional<cm::CallRefusal> refusal =
        exchange.manager().accept(*endpoint.connection, accepted, exchange.now());
    if (refusal) {
        return errno_of(*refusal);
    }
    endpoint.state = State::Accepted;
    return 0;
}

// Answers a peer's question for datagrams. The answer needs no reply.
[[nodiscard]] int answer_question(Endpoint& endpoint, wire::SidrStatus status, const cm::DatagramService& service) {
    Exchange& exchange = *endpoint.device->exchange;
    const std::optional<cm::CallRefusal> refusal =
        exchange.manager().datagrams().answer(*endpoint.question, status, service, exchange.now());
    if (refusal) {
        return errno_of(*refusal);
    }
    exchange.forget_question(endpoint);
    endpoint.state = status == wire::SidrStatus::Valid ? State::Connected : State::Failed;
    return 0;
}

// Refuses a peer's request or reply. Returns an errno value.
[[nodiscard]] int refuse(Endpoint& endpoint, wire::RejectReason why, std::span<const std::uint8_t> private_data) {
    if (endpoint.is_datagrams()) {
        return answer_question(endpoint, wire::SidrStatus::Rejected, {{}, {}, private_data});
    }
    Exchange& exchange = *endpoint.device->exchange;
    const std::optional<cm::CallRefusal> refusal =
        exchange.manager().reject(*endpoint.connection, {why, {}, private_data}, exchange.now());
    if (refusal) {
        return errno_of(*refusal);
    }
    endpoint.state = State::Failed;
    return 0;
}

[[nodiscard]] bool is_there(const Endpoint& endpoint) noexcept {
    return endpoint.connection.has_value() || endpoint.question.has_value();
}

}  // namespace

int listen(Endpoint& endpoint, int backlog) {
    Held held(endpoint);
    const int unbound =
        judge_call(endpoint.state, Call::Listen) == Answer::BindFirst ? take_address(endpoint, {}, Purpose::Serve) : 0;
    if (unbound != 0) {
        return unbound;
    }
    if (judge_call(endpoint.state, Call::Listen) != Answer::Go) {
        return EINVAL;
    }
    if (!has_service(endpoint)) {
        return EOPNOTSUPP;
    }
    PortClaim port = endpoint.claimed;
    port.shares = false;
    if (endpoint.claimed.shares && !change_port(port)) {
        return EADDRINUSE;
    }
    const auto places = static_cast<std::uint32_t>(backlog <= 0 || backlog > kMostBacklog ? kMostBacklog : backlog);
    limit_requests(endpoint, places);
    const int refused =
        endpoint.device != nullptr ? listen_where_bound(held, endpoint, places) : listen_everywhere(endpoint, places);
    if (refused == 0) {
        endpoint.state = State::Listening;
    } else if (endpoint.claimed.shares) {
        static_cast<void>(change_port(endpoint.claimed));
    }
    return refused;
}

int connect(Endpoint& endpoint, const rdma_conn_param& wanted) {
    const Held held(endpoint);
    if (judge_call(endpoint.state, Call::Connect) != Answer::Go) {
        return EINVAL;
    }
    if (!has_service(endpoint)) {
        return EOPNOTSUPP;
    }
    endpoint.state = State::Connecting;
    const int refused =
        endpoint.is_datagrams() ? ask_for_datagrams(endpoint, wanted) : ask_for_connection(endpoint, wanted);
    if (refused != 0) {
        endpoint.state = State::RouteResolved;
        return refused;
    }
    endpoint.device->exchange->settle();
    return 0;
}

// Accepts a request. One that cannot be accepted is refused, as a kernel does it: the peer need not wait.
int accept(Endpoint& endpoint, const rdma_conn_param& wanted) {
    const Held held(endpoint);
    if (judge_call(endpoint.state, Call::Accept) != Answer::Go || !is_there(endpoint)) {
        return EINVAL;
    }
    const cm::DatagramService service{Qpn{wanted.qp_num}, Qkey{RDMA_UDP_QKEY}, private_data_of(wanted)};
    const int refused = endpoint.is_datagrams() ? answer_question(endpoint, wire::SidrStatus::Valid, service)
                                                : accept_connection(endpoint, wanted);
    if (refused != 0) {
        (void)refuse(endpoint, wire::RejectReason::Consumer, {});
    }
    endpoint.device->exchange->settle();
    return refused;
}

int establish(Endpoint& endpoint) {
    const Held held(endpoint);
    if (judge_call(endpoint.state, Call::Establish) != Answer::Go || !is_there(endpoint)) {
        return EINVAL;
    }
    Exchange& exchange = *endpoint.device->exchange;
    const std::optional<cm::CallRefusal> refusal = exchange.establish(*endpoint.connection);
    if (refusal) {
        return errno_of(*refusal);
    }
    endpoint.state = State::Connected;
    exchange.settle();
    return 0;
}

int reject(Endpoint& endpoint, std::span<const std::uint8_t> private_data, std::uint8_t reason) {
    const Held held(endpoint);
    if (judge_call(endpoint.state, Call::Reject) != Answer::Go || !is_there(endpoint)) {
        return EINVAL;
    }
    const wire::RejectReason why = reason == 0 ? wire::RejectReason::Consumer : static_cast<wire::RejectReason>(reason);
    const int refused = refuse(endpoint, why, private_data);
    endpoint.device->exchange->settle();
    return refused;
}

int disconnect(Endpoint& endpoint) {
    const Held held(endpoint);
    const Answer verdict = judge_call(endpoint.state, Call::Disconnect);
    if (verdict == Answer::No) {
        return EINVAL;
    }
    if (verdict == Answer::Go && endpoint.connection) {
        Exchange& exchange = *endpoint.device->exchange;
        (void)exchange.manager().disconnect(*endpoint.connection, {}, exchange.now());
        exchange.settle();
    }
    return 0;
}

int notify(Endpoint& endpoint, ibv_event_type event) {
    const Held held(endpoint);
    const Answer verdict = judge_call(endpoint.state, Call::Notify);
    if (event != IBV_EVENT_COMM_EST || verdict == Answer::No || !endpoint.connection) {
        return EINVAL;
    }
    if (verdict == Answer::Connected) {
        return EISCONN;
    }
    Exchange& exchange = *endpoint.device->exchange;
    if (const std::optional<cm::CallRefusal> refusal = exchange.manager().established(*endpoint.connection)) {
        return errno_of(*refusal);
    }
    exchange.tell_established(endpoint);
    exchange.settle();
    return 0;
}

void end(Endpoint& endpoint) noexcept {
    if (endpoint.state == State::Listening && endpoint.device == nullptr) {
        for (Device* const device : open_devices()) {
            unlisten_on(*device, endpoint);
        }
    }
    {
        const Held held(endpoint);
        if (endpoint.device != nullptr) {
            Exchange& exchange = *endpoint.device->exchange;
            static_cast<void>(exchange.unlisten(endpoint));
            exchange.abandon(endpoint);
            exchange.settle();
        }
        if (endpoint.claimed.port != 0) {
            if (release_port(endpoint.claimed)) {
                release_service(*endpoint.device, service_of(endpoint, endpoint.claimed.port));
            }
            endpoint.claimed.port = 0;
        }
        endpoint.state = State::Failed;
    }
    const std::vector<std::unique_ptr<Event>> dropped = forget_events(endpoint);
}

void EndEndpoint::operator()(Endpoint* endpoint) const noexcept {
    end(*endpoint);
    delete endpoint;
}

}  // namespace cairn::rdmacm
