#include "rpc/sim/copyrpc_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cairn::sim {

namespace {

constexpr Duration kActsEvery = microseconds(300);
constexpr std::uint64_t kSkipped = 4096;
constexpr std::uint16_t kSessionsMost = 6;
constexpr std::size_t kMostPoolBytes = std::size_t{kSessionsMost} * 4 * 65536 + (1U << 20U);

WorldShape shape_of(std::uint64_t seed) {
    WorldShape shape;
    shape.hosts = 2 + seed % 2;
    shape.workers = WorldShape::workers_from_seed(seed, shape.hosts, 5);
    shape.family = seed % 5 < 3 ? Family::V4 : Family::V6;
    shape.most_bytes = static_cast<std::uint16_t>(CopyrpcPlan::from_seed(seed).path_mtu_bytes +
                                                  roce::rc::kMaxHeaderBytes + port::kIcrcBytes);
    shape.engine.max_queue_pairs = 32;
    shape.engine.max_regions = 32;
    shape.engine.held_packets = 64;
    shape.harmful = milliseconds(40);
    shape.healing = milliseconds(60);
    return shape;
}

// What is late comes within the packet lifetime that connections reckon with.
FaultMix mix_of(std::uint64_t seed) {
    return FaultMix::from_seed(seed).within(
        {.late_copy_most = milliseconds(4), .stall_max = milliseconds(3), .restart_every = milliseconds(30)});
}

}  // namespace

CopyrpcWorld::CopyrpcWorld(std::uint64_t seed)
    : World(seed, shape_of(seed), mix_of(seed)), users_(*this, CopyrpcPlan::from_seed(seed)) {
    add(users_);
}

CopyrpcScenario::CopyrpcScenario(World& world, const CopyrpcPlan& plan, VerbsScenario* others)
    : world_(world),
      random_(world.random()),
      plan_(plan),
      others_(others),
      processes_(world),
      oracle_(world, plan_),
      calling_(world, plan_, oracle_),
      serving_(world, oracle_, calling_) {
    for (std::size_t i = 0; i < world.nodes(); ++i) {
        auto node = std::make_unique<CopyrpcNode>();
        node->calling = &calling_;
        node->serving = &serving_;
        node->host = &world.node(i);
        node->memory = AlignedMemory(kMostPoolBytes);
        nodes_.push_back(std::move(node));
    }
}

// Where memory is scarce, it has room for few sessions, but always for one.
void CopyrpcScenario::make_pool(CopyrpcNode& node) {
    std::size_t bytes = kMostPoolBytes;
    if (world_.mix().node.scarce_memory) {
        const std::size_t session =
            rpc::MsgPool::bytes_for(node.config.ring_bytes) + rpc::MsgPool::bytes_for(plan_.most_ring_bytes);
        bytes = std::min(bytes, session * random_.between(2, 5));
    }
    node.pool.emplace(node.memory.span().first(bytes));
}

void CopyrpcScenario::start(Node& host) {
    CopyrpcNode& node = at(host);
    node.device = std::make_unique<verbs::Device>(host.worker());
    const VerbsProcesses& processes = others_ != nullptr ? others_->processes() : processes_;
    if (others_ == nullptr) {
        // A process may have the queue pair numbers and keys of the one before it, but not its starting PSNs.
        for (std::uint64_t left = random_.below(kSkipped); left > 0; --left) {
            (void)host.worker().engine().unguessable();
        }
        cm::Config config = plan_.cm;
        config.ca_guid = host.process();
        node.own_home = connections::Home::create(processes_.agent_of(host), host.worker(), {config}).value();
    }
    connections::Home& home = others_ != nullptr ? others_->home_of(host) : *node.own_home;
    copyrpc::EndpointConfig config;
    const std::uint32_t doublings =
        static_cast<std::uint32_t>(random_.below(plan_.most_ring_bytes / plan_.least_ring_bytes > 1 ? 2 : 1));
    config.ring_bytes = doublings != 0 ? plan_.most_ring_bytes : plan_.least_ring_bytes;
    config.peer_ring_bytes_max = plan_.most_ring_bytes;
    config.receives = static_cast<std::uint16_t>(4U << random_.below(4));
    config.sessions_max = static_cast<std::uint16_t>(random_.between(1, kSessionsMost));
    config.calls_max = static_cast<std::uint32_t>(random_.chance(kMillion / 4) ? random_.between(1, 16) : 256);
    config.message_bytes_max = 0;
    config.answer_bytes = static_cast<std::uint32_t>(random_.below(400));
    config.peer_timeout = plan_.peer_timeout;
    config.path_mtu_bytes = plan_.path_mtu_bytes;
    node.config = config;
    make_pool(node);
    node.endpoint = copyrpc::Endpoint::create(config, *node.device, home, *node.pool).value();
    calling_.start(node);
    serving_.start(node);
    node.listens = processes.listens(host).has_value();
    if (node.listens) {
        const bool listening = node.endpoint->listen(CopyrpcCalling::kPort).ok();
        oracle_.check(listening, "an endpoint can listen", &node);
    }
    if (plan_.has_strangers && !world_.healed()) {
        node.stranger = std::make_unique<CopyrpcStranger>(world_, host, home, host.number() == 0, plan_.path_mtu_bytes);
    }
    node.next_act = world_.now() + random_.between(Duration{}, kActsEvery);
}

// What ends with the endpoint is told, the rest is forgotten, and every buffer comes back.
void CopyrpcScenario::stop(Node& host) {
    CopyrpcNode& node = at(host);
    count(node);
    node.stranger.reset();
    node.sessions.clear();
    node.endpoint.reset();
    forget_calls(node);
    node.kept.clear();
    node.nested.clear();
    node.last_executed.clear();
    oracle_.check(node.pool->live() == 0, "an endpoint that ends gives its message buffers back", &node);
    node.own_home.reset();
    node.device.reset();
    oracle_.check(!plan_.alone || host.worker().engine().queue_pairs() == 0, "queue pairs that nobody has", &node);
}

void CopyrpcScenario::forget_calls(CopyrpcNode& node) {
    for (const std::uint32_t serial : node.pending) {
        CopyrpcCall& call = oracle_.call(serial);
        oracle_.check(!call.ends_with_endpoint, "a call that ends with its endpoint is told", &node);
        call.abandoned = true;
        node.pool->release(call.response);
    }
    node.pending.clear();
    node.deadlines.clear();
}

void CopyrpcScenario::count(CopyrpcNode& node) {
    const copyrpc::Statistics& said = node.endpoint->statistics();
    CopyrpcCounters& counters = oracle_.counters();
    counters.ends.breaches += said.breaches.snapshot().total();
    counters.ends.late_answers += said.late_answers;
    counters.ends.displaced += said.links.displaced;
    counters.ends.batches += said.batches_sent;
    if (node.stranger != nullptr) {
        counters.ends.strangers_connected += node.stranger->connected();
        counters.ends.strangers_batches += node.stranger->batches();
    }
    const auto transport = node.host->worker().engine().rc_counters().snapshot();
    oracle_.check(!plan_.alone || plan_.has_strangers || transport.of(roce::rc::RcCounter::RnrNakSent) == 0,
                  "a batch finds a receive request", &node);
}

void CopyrpcScenario::act(Node& host) {
    CopyrpcNode& node = at(host);
    oracle_.check_bounds(node);
    oracle_.check_kept(node);
    serving_.answer_kept(node);
    if (node.stranger != nullptr) {
        node.stranger->look();
    }
    if (active_ && world_.now() >= node.next_act) {
        node.next_act = world_.now() + random_.between(microseconds(1), kActsEvery);
        calling_.act(node);
        if (node.stranger != nullptr) {
            const std::size_t peer = (host.host() + random_.between(1, world_.hosts() - 1)) % world_.hosts();
            node.stranger->act(peer, CopyrpcCalling::kPort);
        }
    }
}

void CopyrpcScenario::after_turn(Node& host) {
    oracle_.check_kept(at(host));
}

Instant CopyrpcScenario::next_act(const Node& host) const {
    const CopyrpcNode& node = at(host);
    Instant next = active_ ? node.next_act : Instant::never();
    for (const KeptRequest& each : node.kept) {
        next = std::min(next, each.due);
    }
    return next;
}

void CopyrpcScenario::on_heal() {
    active_ = false;
    calling_.set_calm();
    serving_.set_calm();
    for (const auto& node : nodes_) {
        node->host->read_clock();
        if (node->stranger != nullptr) {
            node->stranger->leave();
        }
        for (const CopyrpcSession& session : std::vector<CopyrpcSession>(node->sessions)) {
            if (session.odd) {
                calling_.disconnect(*node, session.id);
            }
        }
    }
}

std::string CopyrpcScenario::text() const {
    const CopyrpcCounters& all = counters();
    return fmt::format(
        "rings of {} to {} bytes, path MTU {}, peer timeout {} ns, {}; {} sessions, {} refused, {} peers lost; {} "
        "calls, "
        "{} answered, {} too long, {} too late, {} cancelled, {} disconnected, {} lost, {} refused, {} nested, {} "
        "retained, {} tried in vain, {} told of room; {} batches, {} breaches",
        plan_.least_ring_bytes, plan_.most_ring_bytes, plan_.path_mtu_bytes, plan_.peer_timeout.ns,
        plan_.has_strangers ? "strangers" : "no strangers", all.sessions, all.sessions_refused, all.peers_lost,
        all.calls, all.calls_ok, all.too_long, all.deadlines_passed, all.cancelled, all.disconnected, all.calls_lost,
        all.answers_refused, all.nested, all.retained, all.tried_in_vain, all.told_of_room, all.ends.batches,
        all.ends.breaches);
}

}  // namespace cairn::sim
