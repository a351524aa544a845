#include "lib/connections/home.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "lib/wire/mad.hpp"

namespace cairn::connections {

namespace {

struct RefusalText {
    cm::CallRefusal refusal;
    std::string_view what;
    std::string_view remedy;
};
constexpr std::array kRefusalTexts{
    RefusalText{cm::CallRefusal::UnknownConnection, "the connection or question has ended", "look at its events"},
    RefusalText{cm::CallRefusal::WrongState, "the connection is not in a state for this", "look at its events"},
    RefusalText{cm::CallRefusal::PrivateDataTooLong, "the private data is too long", "send it as a message"},
    RefusalText{cm::CallRefusal::BadParameters, "a parameter is out of range", "see ConnectTo, and give a backlog"},
    RefusalText{cm::CallRefusal::BadAddress, "no host has this address, or it is of another family than the port's",
                "give a host's address, of the port's family"},
    RefusalText{cm::CallRefusal::NoRoom, "there are as many connections as there may be", "raise max_connections"},
    RefusalText{cm::CallRefusal::ServiceTaken, "somebody listens there already", "choose another port"},
    RefusalText{cm::CallRefusal::UnknownService, "nobody listens there", "listen first"},
};

cm::Config config_for(worker::Worker& worker, const HomeConfig& config) {
    cm::Config made = config.cm;
    made.seed = {worker.engine().unguessable(), worker.engine().unguessable()};
    made.names = {worker.config().owner_bits, worker.config().owner};
    return made;
}

}  // namespace

Status status_of(std::optional<cm::CallRefusal> refusal) {
    const auto found = std::find_if(kRefusalTexts.begin(), kRefusalTexts.end(),
                                    [refusal](const RefusalText& text) { return text.refusal == refusal; });
    return found == kRefusalTexts.end() ? Status(Nothing{})
                                        : Error{std::string(found->what), std::string(found->remedy)};
}

Result<std::unique_ptr<Home>> Home::create(std::shared_ptr<Agent> agent, worker::Worker& worker,
                                           const HomeConfig& config, std::unique_ptr<MadRoad> road) {
    const bool is_owner = road == nullptr && (worker.config().owner == 0 || config.has_queue_pair_1);
    road = road != nullptr ? std::move(road) : std::make_unique<WorkerRoad>(worker);
    std::unique_ptr<Home> made(new Home(std::move(agent), worker, config, std::move(road)));
    Status ready = made->agent_->add(*made, worker);
    made->registered_ = ready.ok();
    if (ready.ok() && is_owner) {
        ready = made->open_queue_pair_1();
    }
    if (!ready.ok()) {
        return ready.error();
    }
    made->tenancy_ = worker.add(*made, worker::Worker::Calls::WhenDue);
    made->registration_ = worker.counters().add(made->list_counters());
    return made;
}

Home::Home(std::shared_ptr<Agent> agent, worker::Worker& worker, const HomeConfig& config,
           std::unique_ptr<MadRoad> road)
    : agent_(std::move(agent)),
      worker_(worker),
      udp_source_port_(config.udp_source_port),
      manager_(config_for(worker, config)),
      road_(std::move(road)) {}

Home::~Home() {
    CAIRN_ASSERT(listened_.empty());
    if (registered_) {
        agent_->remove(worker_);
    }
    if (qp_ != nullptr) {
        worker_.datagrams().destroy_qp(qp_);
    }
}

Status Home::open_queue_pair_1() {
    roce::UdConfig config;
    config.qpn = wire::kGeneralServicesQpn;
    config.qkey = wire::kGeneralServicesQkey;
    config.path_mtu_bytes = wire::kMadBytes;
    const Result<roce::UdEntry*> created = worker_.datagrams().create_qp(config, *this);
    if (!created.ok()) {
        return created.error();
    }
    qp_ = created.value();
    return Nothing{};
}

Status Home::listen(wire::ServiceId service, std::uint32_t backlog, cm::User& user, Sharing sharing) {
    return take_service({cm::ServiceKind::Connections, service, &user}, sharing,
                        manager_.listen(service, backlog, {}, &user));
}

Status Home::unlisten(wire::ServiceId service) {
    return drop_service(cm::ServiceKind::Connections, service, manager_.unlisten(service));
}

Status Home::listen_datagrams(wire::ServiceId service, const std::optional<cm::DatagramService>& standing,
                              cm::User& user, Sharing sharing) {
    return take_service({cm::ServiceKind::Datagrams, service, &user}, sharing,
                        manager_.datagrams().listen(service, {}, standing, &user));
}

Status Home::unlisten_datagrams(wire::ServiceId service) {
    return drop_service(cm::ServiceKind::Datagrams, service, manager_.datagrams().unlisten(service, {}));
}

// The manager's entry comes first, then the registry's. A message that comes in between finds no listener, as before.
Status Home::take_service(const Listened& listened, Sharing sharing, std::optional<cm::CallRefusal> refusal) {
    if (refusal) {
        return status_of(refusal);
    }
    Status claimed = agent_->services().claim(listened.kind, listened.service, worker_.config().owner, sharing);
    if (claimed.ok()) {
        listened_.push_back(listened);
    } else if (listened.kind == cm::ServiceKind::Connections) {
        (void)manager_.unlisten(listened.service);
    } else {
        (void)manager_.datagrams().unlisten(listened.service, {});
    }
    return claimed;
}

Status Home::drop_service(cm::ServiceKind kind, wire::ServiceId service, std::optional<cm::CallRefusal> refusal) {
    if (!refusal) {
        agent_->services().release(kind, service, worker_.config().owner);
        std::erase_if(listened_, [&](const Listened& each) { return each.kind == kind && each.service == service; });
    }
    return status_of(refusal);
}

void Home::leave(const cm::User& user) {
    for (const Listened& each : listened_) {
        if (each.user == &user) {
            agent_->services().release(each.kind, each.service, worker_.config().owner);
        }
    }
    std::erase_if(listened_, [&user](const Listened& each) { return each.user == &user; });
    manager_.forget(user, worker_.now());
    settle(worker_.now());
}

port::Path* Home::own_path(const net::IpAddress& remote, Instant now) {
    return worker_.port().open_path({local_address(), remote, udp_source_port_, 0}, now);
}

port::Path* Home::path_to(const net::IpAddress& remote, Instant now) {
    if (arrived_by_ == nullptr || arrived_by_->key.remote != remote) {
        return own_path(remote, now);
    }
    return worker_.port().path_back(*arrived_by_, now);
}

void Home::on_datagrams(std::span<const roce::UdDatagram> datagrams, Instant now) noexcept {
    for (const roce::UdDatagram& datagram : datagrams) {
        agent_->on_mad(worker_, {port::way_back_of(*datagram.packet->path), {datagram.payload, datagram.payload_bytes}},
                       now);
    }
}

// Opens the way back here, as if the sender's message had come to this worker. A later answer then takes this path.
void Home::on_mad(const ArrivedMad& mad, Instant now) {
    (void)worker_.port().path_back(mad.by, now);
    arrived_by_ = &mad.by;
    manager_.on_mad({mad.by.key.local, mad.by.key.remote}, mad.bytes, now);
    settle(now);
    arrived_by_ = nullptr;
}

bool Home::on_turn(Instant now) noexcept {
    manager_.on_timeout(now);
    settle(now);
    return false;
}

// A user that gets an event may call the manager and come back here. The outer call goes on until no event is left.
void Home::settle(Instant now) {
    if (std::exchange(settling_, true)) {
        return;
    }
    while (const std::optional<cm::AddressedEvent> next = manager_.poll_addressed()) {
        if (next->user != nullptr) {
            next->user->on_event(next->event, now);
        }
    }
    send_messages(now);
    settling_ = false;
    tenancy_.wake_at(manager_.next_deadline());
}

// A message without a path is lost, and sent again like any lost message.
void Home::send_messages(Instant now) {
    while (const std::optional<cm::OutMad> mad = manager_.poll_transmit()) {
        if (port::Path* const path = path_to(mad->route.remote, now)) {
            road_->send(*mad, *path, now);
        }
    }
}

telemetry::CounterList Home::list_counters() const {
    telemetry::CounterList list;
    list.add(manager_.counters()).add(manager_.mad_drops());
    if (worker_.config().owner == 0) {
        list.add(agent_->counters());
    }
    return list;
}

}  // namespace cairn::connections
