#include "rpc/sim/erpc_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "rpc/sim/true_source.hpp"

namespace cairn::sim {

namespace {

constexpr Duration kIntrusionEvery = microseconds(500);

WorldShape shape_of(const WorldPlan& plan) {
    WorldShape shape;
    shape.hosts = plan.clients + plan.servers;
    shape.guests = ErpcScenario::kGuests;
    shape.family = plan.family;
    shape.engine.max_queue_pairs = 1;
    shape.engine.max_regions = 1;
    shape.harmful = plan.harmful;
    shape.healing = plan.healing;
    return shape;
}

}  // namespace

ErpcWorld::ErpcWorld(std::uint64_t seed, const WorldPlan& plan)
    : World(seed, shape_of(plan), FaultMix::from_seed(seed)), users_(*this, plan) {
    add(users_);
}

ErpcScenario::ErpcScenario(World& world, const WorldPlan& plan)
    : world_(world),
      random_(world.random()),
      plan_(plan),
      stranger_(world.network(), plan.guests_from(), world.seed() * 5 + 1),
      babbler_(world.network(), plan.guests_from() + 1, world.hosts(), plan.path_mtu_bytes, plan.qpn,
               world.seed() * 7 + 1),
      intruder_(world.network(), plan.guests_from() + 2, plan.guests_from() + 3, plan.clients, world.hosts(),
                plan.path_mtu_bytes, plan.qpn, world.seed() * 11 + 1),
      clients_(plan.clients),
      peer_timeout_(random_.chance(kMillion / 2) ? milliseconds(30) : plan.patience_most),
      next_babble_(world.soon(world.mix().babble_every)),
      next_intrusion_(random_.chance(kMillion / 2) ? world.soon(kIntrusionEvery) : Instant::never()) {
    CAIRN_ASSERT(world.hosts() == plan.clients + plan.servers);
    congestion_.algorithm = static_cast<erpc::CongestionAlgorithm>(random_.below(3));
    congestion_.link_bits_per_s = 1e9;
    for (std::size_t i = 0; i < world.hosts(); ++i) {
        auto node = std::make_unique<ErpcNode>();
        node->scenario = this;
        const auto workers = world.workers_of(i);
        node->host = workers[port::QpnOwners(static_cast<std::uint32_t>(workers.size())).of(plan.qpn)].get();
        node->index = i;
        node->is_client = i < clients_;
        node->memory = AlignedMemory(plan.pool_bytes());
        nodes_.push_back(std::move(node));
    }
}

// If other scenarios are present, only packets to the endpoints' queue pair count.
bool ErpcScenario::is_own(const Frame& frame) const {
    const std::span<const std::uint8_t> datagram = std::span(frame.bytes).subspan(frame.lower_bytes());
    return plan_.alone ||
           (datagram.size() >= sizeof(wire::RawUd) && datagram[0] == wire::kUdSendOnly &&
            reinterpret_cast<const wire::RawUd*>(datagram.data())->bth.dest_qpn.get() == plan_.qpn.value);
}

void ErpcScenario::on_delivery(std::size_t to, const Frame& frame) {
    if (!is_own(frame)) {
        return;
    }
    // A request's content comes only from its client, and a response's content goes only to that client.
    const std::size_t from = world_.network().node_of(frame.source());
    for_each_owner(frame.udp_bytes(), [&](const Owner& owner) {
        check(owner.client == (owner.part == Part::Request ? from : to) || from >= world_.hosts() ||
                  !is_from_its_source(world_.network(), frame),
              "a frame holds no bytes of others");
    });
    if (random_.chance(world_.mix().forge_per_million)) {
        stranger_.forge_from(frame, world_.now());
    }
    if (next_intrusion_ < Instant::never()) {
        intruder_.overhear(frame);
    }
}

void ErpcScenario::on_frame(Node& host, const Frame& frame, bool) {
    if (is_own(frame)) {
        nodes_[host.host()]->heard[world_.network().node_of(frame.source())] = host.now();
    }
}

void ErpcScenario::on_guests_frame(std::size_t place, const Frame& frame) {
    if (place == babbler_.node() && !world_.healed()) {
        babbler_.on_frame(frame, world_.now());
    } else if (place == intruder_.node()) {
        intruder_.on_frame(frame, world_.now());
    } else if (place == intruder_.bystander() && is_own(frame)) {
        intruder_.on_bystanders_frame(frame);
    }  // packets to the forger are not read
    check(!intruder_.amplified(), "who never spoke gets no more than three bytes for each in its name");
}

void ErpcScenario::on_step() {
    if (world_.now() >= next_intrusion_) {
        intruder_.act(world_.now());
        next_intrusion_ = world_.soon(kIntrusionEvery);
    }
    if (world_.now() >= next_babble_) {
        babbler_.babble(clients_ + random_.below(nodes_.size() - clients_), world_.now());
        next_babble_ = world_.soon(world_.mix().babble_every);
    }
    for (const auto& node : nodes_) {
        end_jobs(*node);
    }
}

Instant ErpcScenario::next_step() const {
    Instant next = std::min(next_babble_, next_intrusion_);
    for (const auto& node : nodes_) {
        for (const Instant end : node->job_ends) {
            next = std::min(next, end);
        }
    }
    return next;
}

void ErpcScenario::before_turn(Node& host) {
    ErpcNode& node = *nodes_[host.host()];
    if (node.now() - node.looked_at_time >= peer_timeout_ / 2 - erpc::kScanInterval) {
        node.returned = node.now();
    }
    node.looked_at_time = node.now();
}

// Makes a step of a node's users, after input was delivered and due work was done.
void ErpcScenario::act(Node& host) {
    ErpcNode& node = *nodes_[host.host()];
    check_bounds(node);
    begin_jobs(node);
    answer_late(node);
    if (calling_ && node.is_client && world_.now() >= node.next_call) {
        node.next_call = world_.now() + random_.between(microseconds(1), microseconds(400));
        act(node);
    }
}

void ErpcScenario::after_turn(Node& host) {
    nodes_[host.host()]->endpoint->check_invariants();
}

// Returns when the node's users have something to do.
Instant ErpcScenario::next_act(const Node& host) const {
    const ErpcNode& node = *nodes_[host.host()];
    Instant next = calling_ && node.is_client ? node.next_call : Instant::never();
    for (const LateAnswer& each : node.late) {
        next = std::min(next, each.due);
    }
    return next;
}

void ErpcScenario::on_partition(Node& host, std::size_t neighbour) {
    ErpcNode& node = *nodes_[host.host()];
    if (world_.mix().node.runs_ahead && node.is_client) {
        run_ahead(node, neighbour);
    }
}

// Uses up request numbers: hardly any of these requests reaches the peer.
void ErpcScenario::run_ahead(ErpcNode& node, std::size_t peer) {
    constexpr int kCalls = 4'200;
    std::array<std::uint8_t, sizeof(CallTag)> request{};
    fill_request(request, {static_cast<std::uint32_t>(peer), kInnerCall, 16});
    node.host->read_clock();
    const auto session = std::find_if(node.sessions.begin(), node.sessions.end(),
                                      [peer](const ClientSession& each) { return each.peer == peer; });
    for (int i = 0; peer >= clients_ && session != node.sessions.end() && i < kCalls; ++i) {
        erpc::Call call;
        call.type = kAtOnce;
        call.request = request;
        node.endpoint->cancel(node.endpoint->post(session->id, call, node.now()).id, node.now());
        node.host->worker().sender().flush(node.now());
    }
}

void ErpcScenario::on_heal() {
    next_babble_ = Instant::never();
    for (const auto& node : nodes_) {
        for (const ClientSession& session : std::exchange(node->odd_sessions, {})) {
            node->endpoint->disconnect(session.id, node->now());
        }
    }
    settled_ = world_.now() + peer_timeout_ * 2 + world_.mix().link.late_copy_most;
    calling_ = false;
}

ErpcCounters& ErpcCounters::operator+=(const ErpcCounters& other) noexcept {
    for (const auto field :
         {&ErpcCounters::calls, &ErpcCounters::calls_ok, &ErpcCounters::deadlines_passed, &ErpcCounters::cancelled,
          &ErpcCounters::peers_lost, &ErpcCounters::too_long, &ErpcCounters::answers_lost, &ErpcCounters::nested,
          &ErpcCounters::awaited, &ErpcCounters::jobs, &ErpcCounters::babbled, &ErpcCounters::odd_calls,
          &ErpcCounters::forged, &ErpcCounters::intruded, &ErpcCounters::replayed, &ErpcCounters::spoofed}) {
        this->*field += other.*field;
    }
    drops += other.drops;
    return *this;
}

ErpcCounters ErpcScenario::counters() const {
    ErpcCounters all = counters_;
    all.calls = calls_.size();
    all.forged = stranger_.forged();
    all.babbled = babbler_.sent();
    all.intruded = intruder_.opened();
    all.replayed = intruder_.replayed();
    all.spoofed = intruder_.spoofed();
    for (const auto& node : nodes_) {
        all.drops += node->drops;
    }
    return all;
}

std::string ErpcScenario::text() const {
    const ErpcCounters all = counters();
    return fmt::format(
        "peer timeout {} ns, {} calls, {} answered, {} too late, {} cancelled, {} nested, {} peers lost, {} forged, {} "
        "babbled",
        peer_timeout_.ns, all.calls, all.calls_ok, all.deadlines_passed, all.cancelled, all.nested, all.peers_lost,
        all.forged, all.babbled);
}

}  // namespace cairn::sim
