// The users of connections connect and part. The order of their events is checked.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <variant>

#include "lib/sim/verbs/verbs_connections.hpp"

namespace cairn::sim {

using verbs::QpState;

namespace {

using HelloBytes = std::array<std::uint8_t, sizeof(VerbsHello)>;

HelloBytes bytes_of(const VerbsHello& hello) {
    HelloBytes bytes;
    std::memcpy(bytes.data(), &hello, bytes.size());
    return bytes;
}

VerbsHello hello_in(const cm::PrivateBytes& data) {
    VerbsHello hello;
    if (data.size >= sizeof(hello)) {
        std::memcpy(&hello, data.octets.data(), sizeof(hello));
    }
    return hello;
}

VerbsHello hello_of(const VerbsHost& host, const VerbsEnd& end) {
    return {end.serial, end.peer, host.region->rkey().value, end.region->rkey().value,
            static_cast<std::uint32_t>(end.slot)};
}

}  // namespace

VerbsEnd& VerbsConnections::add_end(VerbsHost& host, std::size_t peer_place) {
    VerbsEnd& end = ends_.add();
    end.host = host.node.index();
    end.process = host.node.process();
    end.peer_place = peer_place;
    end.slot = host.take_slot().value();
    end.target.settled.assign(VerbsTarget::kBytes, VerbsTarget::kUnwritten);
    std::copy(end.target.settled.begin(), end.target.settled.end(), host.slot_at(end, VerbsHost::kTarget));
    end.send_slots = static_cast<std::uint32_t>(random_.between(1, VerbsHost::kRequests));
    end.region = host.device
                     ->register_memory(*host.pd, {host.slot_at(end, 0), VerbsHost::kSlotBytes}, VerbsHost::kAll,
                                       VerbsHost::slot_address(end.slot))
                     .value();
    verbs::QpCapacity capacity;
    capacity.send_slots = end.send_slots;
    capacity.receive_slots = VerbsHost::kRequests;
    capacity.max_sges = 2;
    capacity.window_packets = static_cast<std::uint32_t>(random_.between(2, 64));
    end.shared = plan_.shares && random_.chance(kMillion / 2);
    verbs::QpQueues queues{*host.queues[random_.below(host.queues.size())],
                           *host.queues[random_.below(host.queues.size())]};
    queues.shared_receives = end.shared ? host.shared.get() : nullptr;
    end.qp = host.device->create_qp(*host.pd, capacity, queues).value();
    host.live.push_back(&end);
    return end;
}

verbs::ConnectionChoice VerbsConnections::choose(std::span<const std::uint8_t> hello) {
    verbs::ConnectionChoice choice;
    choice.access = VerbsHost::kPeers;
    choice.responder_resources = static_cast<std::uint8_t>(random_.between(1, 16));
    choice.initiator_depth = static_cast<std::uint8_t>(random_.between(1, 16));
    choice.rnr_retry =
        static_cast<std::uint8_t>(!plan_.lazy || plan_.shares || random_.chance(kMillion / 2) ? 7 : random_.below(7));
    choice.min_rnr_timer = wire::RnrTimer{static_cast<std::uint8_t>(random_.between(1, 14))};
    choice.features = random_.chance(kMillion * 2 / 3) ? wire::kFeatureSelective : 0;
    choice.features |= random_.chance(kMillion * 2 / 3) ? wire::kFeatureDelayedAcks : 0;
    choice.private_data = hello;
    return choice;
}

void VerbsConnections::connect(VerbsHost& host, std::size_t place) {
    VerbsEnd& end = add_end(host, place);
    end.active = true;
    const HelloBytes hello = bytes_of(hello_of(host, end));
    verbs::ConnectTo how;
    how.remote = world_.network().address_of(place);
    how.port = VerbsHost::kPort;
    const std::uint32_t most = host.device->limits().path_mtu_bytes;
    how.path_mtu_bytes = most >> random_.below(static_cast<std::uint64_t>(std::countr_zero(most / 256)) + 1);
    how.retry_count = static_cast<std::uint8_t>(world_.healed() ? 7 : random_.between(1, 7));
    how.choice = choose(hello);
    const auto asked = host.connector->connect(*end.qp, how, host.node.now());
    world_.check(asked.ok(), "connect() refuses", &host.node);
    if (asked.ok()) {
        end.id = asked.value();
        ++counters_.asked;
    }
}

void VerbsConnections::answer(VerbsHost& host, const VerbsAsked& asked) {
    const bool forged = asked.hello.serial == VerbsStranger::kSerial;
    if (forged || host.is_full() || (!world_.healed() && random_.chance(kMillion / 10))) {
        ++counters_.refused;
        world_.check(host.connector->reject(asked.id, {}, host.node.now()).ok(), "reject() refuses", &host.node);
        return;
    }
    VerbsEnd& end = add_end(host, asked.from);
    end.id = asked.id;
    end.peer = asked.hello.serial;
    end.heard = asked.hello;
    end.stage = VerbsStage::Accepted;
    const HelloBytes hello = bytes_of(hello_of(host, end));
    const Status accepted = host.connector->accept(asked.id, *end.qp, choose(hello), host.node.now());
    world_.check(accepted.ok(), "accept() refuses", &host.node);
    traffic_.post_receives(end, plan_.lazy && !world_.healed());
}

void VerbsConnections::leave(VerbsHost& host, VerbsEnd& end) {
    ++counters_.left;
    end.stage = VerbsStage::Leaving;
    world_.check(host.connector->disconnect(end.id, {}, host.node.now()).ok(), "disconnect() refuses", &host.node);
}

void VerbsConnections::give_up(VerbsHost& host, VerbsEnd& end) {
    ++counters_.abandoned;
    host.connector->abandon(end.id, host.node.now());
    destroy(host, end);
}

// Destroys an end that gets no more events.
void VerbsConnections::destroy(VerbsHost& host, VerbsEnd& end) {
    traffic_.take_completions(host);
    const QpState state = end.qp->state();
    world_.check(state == QpState::Err || state == QpState::Reset, "a connection is over, and its queue pair goes on",
                 &host.node);
    traffic_.check_over(end);
    if (random_.chance(kMillion / 2)) {
        end.region.reset();
    }
    end.qp.reset();
    end.region.reset();
    std::erase(host.live, &end);
    host.free_slot(end.slot);
    end.stage = VerbsStage::Over;
}

void VerbsConnections::hear(VerbsHost& host) {
    while (const std::optional<cm::Event> event = host.connector->poll_event()) {
        std::visit(
            [&]<class Kind>(const Kind& kind) {
                if constexpr (std::is_same_v<Kind, cm::Requested>) {
                    on_event(host, kind);
                } else if constexpr (std::is_same_v<decltype(kind.id), cm::ConnectionId>) {
                    on_event_of(host, *event, kind.id);
                } else {
                    world_.check(false, "an event of a question that nobody asked", &host.node);
                }
            },
            *event);
    }
}

void VerbsConnections::on_event(VerbsHost& host, const cm::Requested& event) {
    const VerbsHello hello = hello_in(event.private_data);
    if (hello.serial == VerbsStranger::kSerial) {
        stranger_.on_told();
        host.asked.push_back({event.id, hello, 0, world_.now()});
        return;
    }
    const VerbsEnd* const peer = ends_.find(hello.serial);
    const bool known = peer != nullptr && peer->active && peer->peer_place == host.node.host() &&
                       world_.network().address_of(place_of(*peer)) == event.route.remote;
    world_.check(known, "a request that nobody made", &host.node);
    world_.check(host.find(event.id) == nullptr && host.refused.count(event.id) == 0, "a name given twice", &host.node);
    const auto workers = world_.workers_of(host.node.host());
    const bool again = std::any_of(workers.begin(), workers.end(),
                                   [&](const auto& each) { return hosts_[each->index()]->knows(hello.serial); });
    world_.check(!again, "a copy of a request is a request of its own", &host.node);
    if (known) {
        const Duration patience = plan_.slow && !world_.healed() ? milliseconds(20) : microseconds(50);
        host.asked.push_back({event.id, hello, place_of(*peer), world_.now() + random_.between(Duration{}, patience)});
    }
}

// Requires that both ends are connected to each other.
void VerbsConnections::on_established(VerbsHost& host, VerbsEnd& end, const cm::Established& event) {
    ++counters_.established;
    counters_.elsewhere += host.node.number() != 0 ? 1U : 0U;
    if (end.active) {
        world_.check(end.stage == VerbsStage::Asking, "established what was not asked for", &host.node);
        end.heard = hello_in(event.private_data);
        end.peer = end.heard.serial;
    } else {
        world_.check(end.stage == VerbsStage::Accepted, "established what was not accepted", &host.node);
    }
    const VerbsEnd* const peer = ends_.find(end.peer);
    world_.check(peer != nullptr && peer->peer == end.serial && place_of(*peer) == end.peer_place &&
                     peer->peer_place == place_of(end) && peer->active != end.active,
                 "established with somebody else", &host.node);
    end.stage = VerbsStage::Up;
    if (world_.broken() || end.qp->state() != QpState::Rts) {
        return;  // the connection may be over already; the next event or a completion shows that
    }
    traffic_.post_receives(end, plan_.lazy && !world_.healed());
    if (world_.healed()) {
        traffic_.post_probe(end);
    }
}

void VerbsConnections::on_event_of(VerbsHost& host, const cm::Event& event, cm::ConnectionId id) {
    const bool over = std::holds_alternative<cm::Released>(event);
    VerbsEnd* const end = host.find(id);
    if (end == nullptr) {  // a request that was not answered
        const auto waits = [id](const VerbsAsked& each) { return each.id == id; };
        const bool waited = std::erase_if(host.asked, waits) != 0;
        world_.check(waited || host.refused.count(id) != 0, "an event of a connection that is gone", &host.node);
        if (over) {
            host.refused.erase(id);
        } else {
            host.refused.insert(id);
        }
        return;
    }
    if (const auto* established = std::get_if<cm::Established>(&event)) {
        on_established(host, *end, *established);
        return;
    }
    world_.check(end->qp->state() == QpState::Err || end->qp->state() == QpState::Reset,
                 "told that a connection is over, and its queue pair goes on", &host.node);
    if (over) {
        world_.check(end->stage == VerbsStage::Leaving, "released without a reason", &host.node);
        destroy(host, *end);
        return;
    }
    counters_.rejected += std::holds_alternative<cm::Rejected>(event) ? 1U : 0U;
    counters_.unreachable += std::holds_alternative<cm::Unreachable>(event) ? 1U : 0U;
    if (std::holds_alternative<cm::DisconnectRequested>(event)) {
        end->stage = VerbsStage::LeaveAsked;
        end->acts_at = world_.now() + random_.between(Duration{}, milliseconds(plan_.slow ? 5 : 1));
    } else {
        end->stage = VerbsStage::Leaving;
        end->acts_at = Instant::never();
    }
}

}  // namespace cairn::sim
