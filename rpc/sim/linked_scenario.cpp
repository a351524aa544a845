#include "rpc/sim/linked_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cairn::sim {

namespace {

constexpr Duration kActsEvery = microseconds(300);
constexpr std::uint64_t kSkipped = 4096;
constexpr std::uint64_t kLooksEach = 8;   // writes of a hostile peer between two looks at the bytes that it got
constexpr std::uint64_t kPromptEach = 8;  // one in this many worlds is prompt

}  // namespace

LinkedPlan LinkedPlan::from_seed(std::uint64_t seed) {
    constexpr Duration kTimeouts[] = {milliseconds(20), milliseconds(50), milliseconds(200)};
    const VerbsPlan connections = VerbsPlan::quick_from_seed(seed);
    Random random(seed ^ 0x11deU);
    LinkedPlan plan;
    plan.path_mtu_bytes = connections.path_mtu_bytes;
    plan.cm = connections.cm;
    plan.peer_timeout = kTimeouts[random.below(3)];
    plan.longest_end = connections.longest_end() + plan.peer_timeout * 2;
    plan.has_strangers = random.chance(kMillion / 2);
    return plan;
}

WorldShape LinkedPlan::shape_of_world(std::uint64_t seed) const {
    WorldShape shape;
    shape.hosts = 2 + seed % 2;
    shape.workers = WorldShape::workers_from_seed(seed, shape.hosts, 5);
    shape.family = seed % 5 < 3 ? Family::V4 : Family::V6;
    shape.most_bytes = static_cast<std::uint16_t>(path_mtu_bytes + roce::rc::kMaxHeaderBytes + port::kIcrcBytes);
    shape.engine.max_queue_pairs = 32;
    shape.engine.max_regions = 32;
    shape.engine.held_packets = 64;
    shape.harmful = milliseconds(40);
    shape.healing = milliseconds(60);
    return shape;
}

// Returns the faults. Late packets come within the packet lifetime that connections assume. In some worlds no packet is
// late, so it is known which requests come too late.
FaultMix LinkedPlan::mix_of_world(std::uint64_t seed) {
    const FaultMix mix = FaultMix::from_seed(seed).within(
        {.late_copy_most = milliseconds(4), .stall_max = milliseconds(3), .restart_every = milliseconds(30)});
    return seed % kPromptEach == kPromptEach - 1 ? mix.prompt() : mix;
}

LinkedScenario::LinkedScenario(World& world, const LinkedPlan& plan, LinkedSystem& system, VerbsScenario* others)
    : world_(world),
      random_(world.random()),
      plan_(plan),
      system_(system),
      others_(others),
      processes_(world),
      oracle_(world, plan_, system),
      calling_(world, plan_, system, oracle_),
      serving_(world, system, oracle_, calling_) {
    for (std::size_t i = 0; i < world.nodes(); ++i) {
        auto node = std::make_unique<LinkedNode>();
        node->oracle = &oracle_;
        node->calling = &calling_;
        node->serving = &serving_;
        node->host = &world.node(i);
        node->memory = AlignedMemory(system.memory_most());
        nodes_.push_back(std::move(node));
    }
}

void LinkedScenario::start(Node& host) {
    LinkedNode& node = at(host);
    node.device = std::make_unique<verbs::Device>(host.worker());
    const VerbsProcesses& processes = others_ != nullptr ? others_->processes() : processes_;
    if (others_ == nullptr) {
        // A process may get queue pair numbers and keys of the process before it, but not its starting PSNs.
        for (std::uint64_t left = random_.below(kSkipped); left > 0; --left) {
            (void)host.worker().engine().unguessable();
        }
        cm::Config config = plan_.cm;
        config.ca_guid = host.process();
        node.own_home = connections::Home::create(processes_.agent_of(host), host.worker(), {config}).value();
    }
    connections::Home& home = others_ != nullptr ? others_->home_of(host) : *node.own_home;
    system_.start(node, home);
    node.buffers_begun = node.pool->live();
    serving_.start(node);
    if (processes.listens(host)) {
        const bool listening = node.endpoint->listen(plan_.port).ok();
        oracle_.check(listening, "an endpoint can listen", &node);
    }
    if (plan_.has_strangers && !world_.healed()) {
        node.stranger = system_.make_stranger(node, home);
    }
    node.next_act = world_.now() + random_.between(Duration{}, kActsEvery);
}

// Ends the process. Calls with ends_with_endpoint complete, others are forgotten, and every buffer must be free again.
void LinkedScenario::stop(Node& host) {
    LinkedNode& node = at(host);
    count(node);
    if (node.stranger != nullptr) {
        oracle_.check_stranger(node);
    }
    node.stranger.reset();
    node.sessions.clear();
    node.endpoint.reset();
    system_.stop(node);
    forget_calls(node);
    node.kept.clear();
    node.nested.clear();
    node.last_executed.clear();
    oracle_.check(node.pool->live() == 0, "an endpoint that ends gives its message buffers back", &node);
    node.own_home.reset();
    node.device.reset();
    oracle_.check(!plan_.alone || host.worker().engine().queue_pairs() == 0, "queue pairs that nobody has", &node);
}

void LinkedScenario::forget_calls(LinkedNode& node) {
    for (const std::uint32_t serial : node.pending) {
        LinkedCall& call = oracle_.call(serial);
        oracle_.check(!call.ends_with_endpoint, "a call that ends with its endpoint is told", &node);
        call.abandoned = true;
        node.pool->release(call.response);
    }
    node.pending.clear();
    node.deadlines.clear();
}

void LinkedScenario::count(LinkedNode& node) {
    LinkedEnds& ends = oracle_.counters().ends;
    ends.breaches += node.endpoint->breaches();
    if (node.stranger != nullptr) {
        ends.strangers_connected += node.stranger->connected();
        ends.strangers_writes += node.stranger->writes();
    }
    system_.count(node);
}

void LinkedScenario::act(Node& host) {
    LinkedNode& node = at(host);
    system_.on_turn(node);
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
            node.stranger->act(peer, plan_.port);
            if (node.stranger->writes() % kLooksEach == 1) {
                oracle_.check_stranger(node);
            }
        }
    }
}

// Checks frames of connections. Datagrams belong to other scenarios.
void LinkedScenario::on_delivery(std::size_t to, const Frame& frame) {
    const wire::OpcodeTraits* const opcode = wire::find_opcode(frame.udp_bytes()[0]);
    if (opcode != nullptr && opcode->service == wire::Service::Rc && !frame.damaged) {
        oracle_.check_frame(to, frame);
    }
}

void LinkedScenario::after_turn(Node& host) {
    oracle_.check_kept(at(host));
    system_.after_turn(at(host));
}

Instant LinkedScenario::next_act(const Node& host) const {
    const LinkedNode& node = at(host);
    Instant next = std::min(active_ ? node.next_act : Instant::never(), system_.next_turn(node));
    for (const KeptRequest& each : node.kept) {
        next = std::min(next, each.due);
    }
    return next;
}

void LinkedScenario::on_heal() {
    active_ = false;
    system_.on_heal();
    calling_.set_calm();
    serving_.set_calm();
    for (const auto& node : nodes_) {
        node->host->read_clock();
        if (node->stranger != nullptr) {
            oracle_.check_stranger(*node);
            node->stranger->leave();
        }
        for (const LinkedSession& session : std::vector<LinkedSession>(node->sessions)) {
            if (session.odd) {
                calling_.disconnect(*node, session.id);
            }
        }
    }
}

std::string LinkedScenario::text() const {
    const LinkedCounters& all = counters();
    return fmt::format(
        "path MTU {}, peer timeout {} ns, {}; {} sessions, {} refused, {} peers lost; {} calls, {} answered, {} too "
        "long, {} too late, {} cancelled, {} disconnected, {} lost, {} refused, {} nested, {} breaches; {}",
        plan_.path_mtu_bytes, plan_.peer_timeout.ns, plan_.has_strangers ? "strangers" : "no strangers", all.sessions,
        all.sessions_refused, all.peers_lost, all.calls, all.calls_ok, all.too_long, all.deadlines_passed,
        all.cancelled, all.disconnected, all.calls_lost, all.answers_refused, all.nested, all.ends.breaches,
        system_.text());
}

}  // namespace cairn::sim
