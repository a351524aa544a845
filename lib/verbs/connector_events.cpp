// Handles events of the connection manager and applies them to queue pairs.
#include <algorithm>
#include <array>
#include <type_traits>
#include <variant>

#include "lib/verbs/connector.hpp"

namespace cairn::verbs {

namespace {

// One step of a queue pair on its way to RTS, with the attributes that it takes.
struct Step {
    QpState from;
    QpState to;
};
constexpr std::array kSteps{Step{QpState::Reset, QpState::Init}, Step{QpState::Init, QpState::Rtr},
                            Step{QpState::Rtr, QpState::Rts}};

constexpr AttributeSet kOwn = AttributeSet::of(Attribute::Selective, Attribute::DelayedAcks,
                                               Attribute::SendsWait);  // if the service has it

template <class Event>
constexpr bool kEndsTraffic =
    std::is_same_v<Event, cm::DisconnectRequested> || std::is_same_v<Event, cm::Disconnected> ||
    std::is_same_v<Event, cm::Rejected> || std::is_same_v<Event, cm::Unreachable>;

}  // namespace

void Connector::AwaitedPeer::on_event() noexcept {
    connector_.heard_.push(*this);
    connector_.tenancy_.wake_at(Instant{});
}

void Connector::on_event(const cm::Event& event, Instant now) {
    if (const auto* replied = std::get_if<cm::Replied>(&event)) {
        finish_connect(*replied, now);
        return;
    }
    if (const auto* requested = std::get_if<cm::Requested>(&event);
        requested != nullptr && !keep_request(*requested, now)) {
        (void)home_.manager().reject(requested->id, {wire::RejectReason::NoResources, {}, {}}, now);
        return;
    }
    std::visit(
        [this]<class Kind>(const Kind& kind) {
            if constexpr (kEndsTraffic<Kind>) {
                on_traffic_ended(kind.id);
            } else if constexpr (std::is_same_v<Kind, cm::Released>) {
                forget(kind.id);
            } else if constexpr (std::is_same_v<Kind, cm::Established>) {
                let_send(kind.id);
            }
        },
        event);
    events_.push_back(event);
}

// Keeps a peer's request until it is answered. Returns false if there is no path back.
bool Connector::keep_request(const cm::Requested& requested, Instant now) {
    port::Path* const path = home_.path_to(requested.route.remote, now);
    if (path == nullptr) {
        return false;
    }
    path->pin();
    Link& link = links_[requested.id.value];
    link.stage = Link::Stage::Asked;
    link.parameters = requested.qp;
    link.features = requested.features;
    link.path = path;
    return true;
}

void Connector::on_traffic_ended(ConnectionId id) {
    const auto found = links_.find(id.value);
    if (found != links_.end() && found->second.stage == Link::Stage::Asked) {
        forget(id);
    } else {
        stop(id);
    }
}

bool Connector::on_turn(Instant now) noexcept {
    const bool heard = heard_.size() != 0;
    while (heard_.size() != 0) {
        hear_peer(heard_.pop().id());
    }
    home_.settle(now);
    return heard;
}

// The peer's RTU may be lost or late; its first request means the same (12.9.7.2).
void Connector::hear_peer(ConnectionId id) {
    if (!home_.manager().established(id)) {
        let_send(id);
        events_.push_back(cm::Established{id, {}});
    }
}

// A queue pair that is in another state by now refuses the change.
void Connector::let_send(ConnectionId id) {
    awaited_.erase(id.value);
    const auto found = links_.find(id.value);
    if (found != links_.end() && found->second.qp != nullptr) {
        Qp& qp = *found->second.qp;
        (void)qp.modify(qp.state(), AttributeSet::of(Attribute::SendsWait), {});
    }
}

// Brings the queue pair of our accepted request to RTS.
void Connector::finish_connect(const cm::Replied& replied, Instant now) {
    const auto found = links_.find(replied.id.value);
    CAIRN_ASSERT(found != links_.end());
    const cm::Connection* const connection = home_.manager().find(replied.id);
    port::Path* const path = connection == nullptr ? nullptr : home_.own_path(connection->route.remote, now);
    found->second.choice.features = replied.features;
    if (path == nullptr || bring_up(found->second, replied.qp, *path)) {
        (void)home_.manager().reject(replied.id, {wire::RejectReason::NoResources, {}, {}}, now);
        stop(replied.id);
        forget(replied.id);
        cm::Rejected rejected;
        rejected.id = replied.id;
        rejected.reason = wire::RejectReason::NoResources;
        rejected.by_peer = false;
        events_.push_back(rejected);
        return;
    }
    (void)home_.manager().ready(replied.id, {}, now);
    events_.push_back(cm::Established{replied.id, replied.private_data});
}

std::optional<ModifyRefusal> Connector::bring_up(const Link& link, const cm::QpParameters& parameters,
                                                 port::Path& path) {
    QpAttributes values;
    values.access = link.choice.access;
    values.pkey = parameters.pkey;
    values.path_mtu_bytes = parameters.path_mtu_bytes;
    values.dest_qpn = parameters.remote_qpn;
    values.receive_psn = link.starting_psn;
    values.send_psn = parameters.send_psn;
    const auto depth = [this](std::uint8_t theirs, std::uint8_t ours) {
        return static_cast<std::uint8_t>(std::min<std::uint32_t>({theirs, ours, device_.limits().rd_atomic}));
    };
    values.max_dest_rd_atomic = depth(parameters.max_dest_rd_atomic, link.choice.responder_resources);
    values.max_rd_atomic = depth(parameters.max_rd_atomic, link.choice.initiator_depth);
    values.min_rnr_timer = link.choice.min_rnr_timer;
    values.ack_timeout = link.choice.ack_timeout_of(parameters.ack_timeout.value);
    values.retry_count = parameters.retry_count.value;
    values.rnr_retry = std::min(parameters.rnr_retry.value, link.choice.rnr_retry_max);
    values.sends_wait = link.stage == Link::Stage::Asked;
    values.selective = (link.choice.features & wire::kFeatureSelective) != 0;
    values.delayed_acks = (link.choice.features & wire::kFeatureDelayedAcks) != 0;
    Qp& qp = *link.qp;
    if (qp.state() != QpState::Reset) {
        return ModifyRefusal::NoTransition;
    }
    for (const Step& step : kSteps) {
        const auto transition = roce::find_transition(step.from, step.to, qp.kind());
        const AttributeSet which = transition->required.with(transition->optional.within(kOwn));
        if (const std::optional<ModifyRefusal> refusal = qp.modify(step.to, which, values, &path)) {
            (void)qp.modify(QpState::Reset);
            return refusal;
        }
    }
    return std::nullopt;
}

void Connector::stop(ConnectionId id) {
    const auto found = links_.find(id.value);
    if (found != links_.end() && found->second.qp != nullptr && found->second.qp->state() != QpState::Reset) {
        (void)found->second.qp->modify(QpState::Err);
    }
}

void Connector::forget(ConnectionId id) {
    awaited_.erase(id.value);
    const auto found = links_.find(id.value);
    if (found != links_.end()) {
        end(found->second);
        links_.erase(found);
    }
}

void Connector::end(Link& link) noexcept {
    if (link.qp != nullptr) {
        link.qp->release();
    }
    if (link.path != nullptr) {
        link.path->unpin();
    }
}

}  // namespace cairn::verbs
