#include "lib/sim/verbs/verbs_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/cm/timeouts.hpp"

namespace cairn::sim {

namespace {

constexpr Duration kActsEvery = microseconds(600);

std::size_t hosts_of(std::uint64_t seed) {
    return 2 + seed % 3;
}

WorldShape shape_of(std::uint64_t seed) {
    WorldShape shape;
    shape.hosts = hosts_of(seed);
    shape.workers = WorldShape::workers_from_seed(seed, shape.hosts, 6);
    shape.guests = 1;
    shape.family = seed % 5 < 3 ? Family::V4 : Family::V6;
    shape.most_bytes = static_cast<std::uint16_t>(VerbsPlan::from_seed(seed).path_mtu_bytes +
                                                  roce::rc::kMaxHeaderBytes + port::kIcrcBytes);
    shape.engine.max_queue_pairs = 32;
    shape.engine.max_regions = 32;
    shape.engine.held_packets = 64;
    shape.harmful = milliseconds(60);
    shape.healing = milliseconds(200);
    return shape;
}

// Draws the faults. Late copies come within the packet lifetime that connections assume.
FaultMix mix_of(std::uint64_t seed) {
    return FaultMix::from_seed(seed).within({.late_copy_most = milliseconds(4), .stall_max = milliseconds(3)});
}

}  // namespace

VerbsPlan VerbsPlan::quick_from_seed(std::uint64_t seed) {
    Random random(seed ^ 0xe4d5U);
    VerbsPlan plan;
    plan.path_mtu_bytes = 256U << random.below(5);
    plan.cm.response_timeout = wire::CmTimeout{9};
    plan.cm.packet_lifetime = wire::CmTimeout{10};
    plan.cm.ack_delay = wire::CmTimeout{9};
    plan.cm.service_timeout = wire::CmTimeout{12};
    plan.cm.max_retries = wire::CmRetries{static_cast<std::uint8_t>(random.between(3, 15))};
    plan.lazy = random.chance(kMillion / 2);
    plan.slow = random.chance(kMillion / 4);
    plan.hasty = random.chance(kMillion / 2);
    plan.shares = random.chance(kMillion / 2);
    plan.moody = random.chance(kMillion / 4);
    return plan;
}

VerbsPlan VerbsPlan::from_seed(std::uint64_t seed) {
    VerbsPlan plan = quick_from_seed(seed);
    plan.stranger = hosts_of(seed);
    if (Random(seed ^ 0x5107U).chance(kMillion / 4)) {  // as programs have it
        plan.cm = {};
    }
    return plan;
}

Duration VerbsPlan::longest_end() const {
    const Duration wait = cm::response_wait(cm, cm.response_timeout) + wire::duration_of(cm.service_timeout);
    const Duration silence = wire::duration_of(cm::ack_timeout_of(cm.packet_lifetime, cm.ack_delay));
    return (wait * 2 * (cm.max_retries.value + 1) + silence * 10) * 2 + seconds(1);
}

VerbsWorld::VerbsWorld(std::uint64_t seed)
    : World(seed, shape_of(seed), mix_of(seed)), users_(*this, VerbsPlan::from_seed(seed)) {
    add(users_);
}

VerbsScenario::VerbsScenario(World& world, const VerbsPlan& plan)
    : world_(world),
      random_(world.random()),
      plan_(plan),
      processes_(world),
      stranger_(world.network(), plan.stranger, world.seed() * 13 + 1),
      datagrams_(world, hosts_, speech_, [this](VerbsHost& host) { traffic_.take_completions(host); }),
      traffic_(world, hosts_, ends_, datagrams_, counters_),
      connections_(world, plan_, traffic_, hosts_, ends_, stranger_, counters_) {
    for (std::size_t i = 0; i < world.nodes(); ++i) {
        hosts_.push_back(std::make_unique<VerbsHost>(world.node(i), random_));
    }
}

void VerbsScenario::start(Node& node) {
    VerbsHost& host = *hosts_[node.index()];
    cm::Config config = plan_.cm;
    config.ca_guid = node.process();
    std::shared_ptr<connections::Agent> agent = processes_.agent_of(node);
    host.start(config, std::move(agent), processes_.listens(node), random_);
    datagrams_.start(host, plan_.shares);
    if (!world_.healed()) {
        host.acts_at = world_.now() + random_.between(Duration{}, kActsEvery);
    }
}

// Ends the process: its objects are gone, and no peer gets a message.
void VerbsScenario::stop(Node& node) {
    VerbsHost& host = *hosts_[node.index()];
    counters_.transport += node.worker().engine().rc_counters().snapshot();
    counters_.manager += host.home->manager().counters().snapshot();
    host.connector.reset();
    for (VerbsEnd* const end : host.live) {
        traffic_.check_target(*end);
        end->qp.reset();
        end->region.reset();
        host.free_slot(end->slot);
        end->stage = VerbsStage::Over;
    }
    host.live.clear();
    datagrams_.stop(host);
    world_.check(node.worker().engine().queue_pairs() == 0, "queue pairs that nobody has", &node);
    host.stop();
    world_.check(host.unused_untouched(), "memory that nobody has was written to", &node);
}

void VerbsScenario::on_delivery(std::size_t, const Frame& frame) {
    if (world_.mix().forge_per_million != 0) {
        stranger_.on_frame(frame, random_.chance(world_.mix().forge_per_million), world_.now());
    }
}

void VerbsScenario::act(Node& node) {
    VerbsHost& host = *hosts_[node.index()];
    connections_.hear(host);
    traffic_.take_completions(host);
    if (plan_.shares) {
        traffic_.post_shared_receives(host, plan_.lazy && !world_.healed());
    }
    datagrams_.post_receives(host, plan_.lazy && !world_.healed());
    for (const VerbsEnd* const end : std::vector<VerbsEnd*>(host.live)) {
        VerbsEnd& mine = *ends_.find(end->serial);
        const bool works = mine.stage != VerbsStage::Up || mine.out.failed || mine.qp->state() == verbs::QpState::Rts;
        world_.check(works, "a queue pair stopped, and its user is not told", &node);
        traffic_.post_receives(mine, plan_.lazy && !world_.healed());
        if (mine.out.failed && mine.acts_at == Instant::never() &&
            (mine.stage == VerbsStage::Up || mine.stage == VerbsStage::Accepted)) {
            mine.acts_at = world_.now() + random_.between(Duration{}, microseconds(500));
        }
        if (world_.now() >= mine.acts_at) {
            act(host, mine);
        }
    }
    const auto due = std::stable_partition(host.asked.begin(), host.asked.end(),
                                           [this](const VerbsAsked& each) { return each.answer_at > world_.now(); });
    const std::vector<VerbsAsked> answered(due, host.asked.end());
    host.asked.erase(due, host.asked.end());
    for (const VerbsAsked& each : answered) {
        connections_.answer(host, each);
    }
    if (plan_.hasty && !world_.healed() && host.node.worker().sender().queued() != 0) {
        give_up_unsent(host);
    }
    if (world_.now() >= host.acts_at) {
        host.acts_at = world_.now() + random_.between(microseconds(1), kActsEvery);
        act(host);
    }
}

// Gives up a connection whose packets may wait for a full ring. They are read when they leave: by then their owner may
// be gone and its memory reused.
void VerbsScenario::give_up_unsent(VerbsHost& host) {
    const auto has_staged = [](const VerbsEnd* end) {
        const auto& pending = end->out.pending;
        return end->stage == VerbsStage::Up &&
               std::any_of(pending.begin(), pending.end(), [](const VerbsWork& work) { return work.staged; });
    };
    const auto found = std::find_if(host.live.begin(), host.live.end(), has_staged);
    if (found != host.live.end() && random_.chance(kMillion / 4)) {
        connections_.give_up(host, **found);
    }
}

// Takes in events and completions again: a tenant after the users may have made some.
void VerbsScenario::after_turn(Node& node) {
    VerbsHost& host = *hosts_[node.index()];
    connections_.hear(host);
    traffic_.take_completions(host);
}

// Lets a moody host end all objects, and with them its connections, at times; the worker goes on.
void VerbsScenario::on_step() {
    for (const auto& host : hosts_) {
        if (plan_.moody && !world_.healed() && random_.chance(kMillion / 2000)) {
            ++counters_.closed;
            host->node.read_clock();
            stop(host->node);
            start(host->node);
        }
    }
}

// Lets users of the host begin something.
void VerbsScenario::act(VerbsHost& host) {
    datagrams_.act(host, plan_.shares);
    if (random_.chance(kMillion / 6) && !host.is_full()) {
        connections_.connect(host, (host.node.host() + random_.between(1, world_.hosts() - 1)) % world_.hosts());
    }
    for (VerbsEnd* const end : std::vector<VerbsEnd*>(host.live)) {
        if (end->stage == VerbsStage::Up && random_.chance(kMillion / 3)) {
            traffic_.post_some(*end);
        }
        if (random_.chance(kMillion / 60)) {
            act(host, *end);
        } else if (random_.chance(kMillion / 20)) {
            traffic_.check_target(*end);
        }
    }
}

// Takes the next step of the end's user: it leaves.
void VerbsScenario::act(VerbsHost& host, VerbsEnd& end) {
    end.acts_at = Instant::never();
    const bool gives_up = plan_.hasty && !world_.healed() && random_.chance(kMillion / 3);
    switch (end.stage) {
        case VerbsStage::Up:
        case VerbsStage::LeaveAsked:
            if (gives_up) {
                connections_.give_up(host, end);
            } else {
                connections_.leave(host, end);
            }
            break;
        case VerbsStage::Asking:
        case VerbsStage::Accepted:
            if (gives_up || end.out.failed) {
                connections_.give_up(host, end);
            }
            break;
        case VerbsStage::Leaving:
        case VerbsStage::Over:
            break;
    }
}

Instant VerbsScenario::next_act(const Node& node) const {
    const VerbsHost& host = *hosts_[node.index()];
    Instant next = host.acts_at;
    for (const VerbsEnd* const end : host.live) {
        next = std::min(next, end->acts_at);
    }
    for (const VerbsAsked& each : host.asked) {
        next = std::min(next, each.answer_at);
    }
    return next;
}

void VerbsScenario::on_heal() {
    for (const auto& host : hosts_) {
        host->acts_at = Instant::never();
    }
}

std::string VerbsScenario::text() const {
    return fmt::format(
        "path MTU {}, {} connections asked for, {} ends up, {} of them on other workers with {} letters, {} rejected, "
        "{} unreachable, {} refused, {} given up, {} left, {} broken, {} not ready; {} requests, {} messages, {} "
        "writes, {} reads, {} atomics, {} flushed; {} datagrams, {} received; {} packets and {} messages forged",
        plan_.path_mtu_bytes, counters_.asked, counters_.established, counters_.elsewhere, processes_.mail().letters,
        counters_.rejected, counters_.unreachable, counters_.refused, counters_.abandoned, counters_.left,
        counters_.broken, counters_.not_ready, counters_.requests, counters_.messages, counters_.writes,
        counters_.reads, counters_.atomics, counters_.flushed, speech_.posted, speech_.received, forgeries().packets,
        forgeries().messages);
}

}  // namespace cairn::sim
